// The theme: light, dark, or the system's. The browser keeps the choice in localStorage.

const KEY = "claude_wire_theme";

export function themes(select) {
  const set = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    select.value = theme;
  };
  const kept = () => {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : "";
  };
  set(kept());
  select.addEventListener("change", () => {
    if (select.value) localStorage.setItem(KEY, select.value);
    else localStorage.removeItem(KEY);
    set(kept());
  });
  addEventListener("storage", () => set(kept()));
}
