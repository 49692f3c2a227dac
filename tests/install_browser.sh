#!/bin/sh
# What the browser tests need from outside: playwright in the given Python, and a Chromium.
#   sh tests/install_browser.sh .venv/bin/python
# Never fails: where something cannot be had, the tests say so and are skipped.
python=$1
"$python" -c 'import playwright' 2>/dev/null ||
  "$python" -m pip install --quiet --disable-pip-version-check 'playwright>=1.45' ||
  echo 'playwright does not install here: the browser tests will be skipped' >&2
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  { apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core ||
    { apt-get update -qq &&
      apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; }; } >/dev/null 2>&1 && exit 0
fi
echo 'no Chromium here and none can be installed: the browser tests will be skipped' >&2
