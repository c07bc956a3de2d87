#!/bin/sh
# Opens the study full screen for a station; Alt+F4 closes it.
profile="$HOME/wrods-station"
for browser in google-chrome chromium chromium-browser google-chrome-stable microsoft-edge; do
  if command -v "$browser" >/dev/null 2>&1; then
    exec "$browser" SWITCHES --user-data-dir="$profile" PAGE
  fi
done
echo "Neither Chrome, Chromium nor Edge was found." >&2
exit 1
