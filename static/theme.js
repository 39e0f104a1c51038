// The theme that was chosen in this browser, before anything is painted; without script the system's setting holds.
"use strict";
{
  let theme = null;
  try { theme = localStorage.getItem("lexiscope.theme"); } catch { /* nothing is kept here */ }
  document.documentElement.dataset.theme = theme ?? "auto";
}
