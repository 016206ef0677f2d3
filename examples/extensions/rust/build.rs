//! Link libmemrt. pkg-config finds memrt.pc by PKG_CONFIG_PATH, for a Python package in
//! `python -m memrt config --pkgconfigdir`.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let output = Command::new("pkg-config")
        .args(["--variable=libdir", "memrt"])
        .output()
        .expect("pkg-config does not start: install pkg-config");
    if !output.status.success() {
        panic!(
            "{}set PKG_CONFIG_PATH to the output of `python -m memrt config --pkgconfigdir`",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let folder = String::from_utf8(output.stdout).expect("the path of libmemrt is not UTF-8");
    let folder = folder.trim();
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=dylib:+verbatim=libmemrt.so.1");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
}
