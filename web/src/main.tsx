import { render } from "preact";
import { App } from "./app/app";
import { startVisibility } from "./app/open";
import { startRouter } from "./app/router";
import { start } from "./app/session";
import { startTheme } from "./app/theme";
import { initLanguage } from "./i18n";
import "./ui/base.css";
import "./ui/views.css";
import "./ui/inspector.css";
import "./ui/maps.css";

startTheme();
initLanguage();
// The secret is removed from the address before anything else reads the address.
const starting = start();
startRouter();
startVisibility();
const root = document.getElementById("app");
if (root) render(<App />, root);
void starting;
