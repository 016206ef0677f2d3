"""Run memrt's command line as ``python -m memrt``."""

if __name__ == "__main__":
    from memrt._support.import_path import remove_first_path

    remove_first_path()

    from memrt.commands import main

    main()
