import { showPage } from "./app/show";

showPage();
