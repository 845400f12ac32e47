#!/bin/sh
# Print the path of a Chromium for the tests of the page. If Chromium is not installed, install Debian's, and print its
# packages to standard error.
set -eu
for name in chromium google-chrome google-chrome-stable; do
  if command -v "$name"; then
    exit
  fi
done
if ! command -v apt-get > /dev/null; then
  echo "The tests of the page need Chromium. This script can install it only with apt: install it so that chromium is on the PATH." >&2
  exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
  as_root="sudo"
fi
{
  $as_root apt-get --quiet --quiet update
  echo "Chromium is not installed. Installing these packages:"
  apt-get install --simulate --no-install-recommends chromium fonts-dejavu-core | sed -n 's/^Inst /  /p'
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get --quiet --quiet install --yes --no-install-recommends chromium fonts-dejavu-core
} >&2
command -v chromium
