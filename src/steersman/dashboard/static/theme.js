// The theme that was chosen here before, applied before the first paint; without one, the system's.
// A classic script, since modules run after the page has been parsed.
try {
  const chosen = localStorage.getItem("steersman-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is not allowed here: the system's theme it is.
}
