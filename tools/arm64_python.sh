#!/bin/sh
# Unpack Debian's Python for arm64, and an emulator that runs it on this machine, into a folder: arm64_python.sh FOLDER.
# FOLDER/usr/bin/python then works like any Python. Nothing is installed. The package names are those of Debian 12.
set -eu
mkdir -p "$1/packages/state/lists/partial" "$1/packages/cache/archives/partial"
cd "$1"
folder=$(pwd)
cd packages
# Use separate package lists from the same mirror: the machine's own apt must not see arm64 packages.
site=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Codename: bookworm' 'Created-By: Packages' | head -n 1)
echo "deb [arch=arm64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site bookworm main" > sources.list
apt() {
  apt-get -o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State="$PWD/state" \
    -o Dir::Cache="$PWD/cache" -o APT::Architectures::=arm64 "$@"
}
apt --quiet update
names="python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libgcc-s1 libstdc++6 libcrypt1 libexpat1
  zlib1g libbz2-1.0 liblzma5 libffi8 libssl3 libsqlite3-0 libuuid1 libtinfo6 libncursesw6 libreadline8"
apt --quiet download $(printf '%s:arm64 ' $names)
apt-get --quiet download qemu-user-static
for package in *.deb; do
  dpkg -x "$package" "$folder"
done
cd "$folder"
rm -r packages
# The wrapper is a C program, because a shell script would add variables to the environment. -0 passes on the name
# that started the wrapper: the wrapper may be in a virtual environment.
cat > python.c <<END
#include <unistd.h>
int main(int count, char **given) {
  char *all[count + 6], *first[] = {"qemu", "-L", "$folder", "-0", given[0], "$folder/usr/bin/python3.11"};
  for (int at = 0; at < 6; at++) all[at] = first[at];
  for (int at = 1; at <= count; at++) all[at + 5] = given[at];
  return execv("$folder/usr/bin/qemu-aarch64-static", all);
}
END
cc -o usr/bin/python python.c
usr/bin/python -c 'import platform; print(platform.python_version(), platform.machine())'
