"""Commands about the installation of memrt: what is installed, and how to compile against memrt."""
