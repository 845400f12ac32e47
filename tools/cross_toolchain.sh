#!/bin/sh
# Unpack Debian's Rust compiler and the sources of its standard library into a folder: cross_toolchain.sh FOLDER.
# Nothing is installed, and an installed Rust is not changed. The package names are those of Debian 12.
set -eu
mkdir -p "$1/packages" "$1/bin"
cd "$1"
folder=$(pwd)
(cd packages && apt-get download rustc-web cargo-web rust-web-src libstd-rust-web-dev libstd-rust-web-1.85 libllvm19 libhttp-parser2.9 libpcre3)
for package in packages/*.deb; do
  dpkg -x "$package" unpacked
done
libraries="$folder/unpacked/usr/lib/x86_64-linux-gnu:$folder/unpacked/lib/x86_64-linux-gnu"
for program in rustc cargo; do
  printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' "$libraries" "$folder/unpacked/usr/bin/$program" > "bin/$program"
  chmod +x "bin/$program"
done
rm -r packages
bin/cargo --version
