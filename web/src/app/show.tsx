/** Shows the page. */
import { render } from "preact";
import { initLanguage } from "../i18n";
import { App } from "./app";
import { startVisibility } from "./open";
import { startRouter } from "./router";
import { start } from "./session";
import { startTheme } from "./theme";
import "../ui/base.css";
import "../ui/views.css";
import "../ui/inspector.css";
import "../ui/maps.css";

export function showPage(): void {
  startTheme();
  initLanguage();
  // The secret is removed from the address before anything else reads the address.
  const starting = start();
  startRouter();
  startVisibility();
  const root = document.getElementById("app");
  if (root) render(<App />, root);
  void starting;
}
