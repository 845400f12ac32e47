#!/bin/sh
# Unpack Debian's SSH server into a folder, for a test: sshd.sh FOLDER. Nothing is installed, and no server is started.
set -eu
mkdir -p "$1"
cd "$1"
apt-get --quiet download openssh-server libwrap0
for package in *.deb; do
  dpkg -x "$package" .
  rm "$package"
done
