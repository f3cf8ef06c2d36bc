/** Icons, drawn as strokes in the colour of the text. They are decorative: everything with an icon also has a name. */
const PATHS = {
  chat: "M4 5h16v11H10l-4 4v-4H4z",
  eye: "M2 12c3-5 6-7 10-7s7 2 10 7c-3 5-6 7-10 7s-7-2-10-7zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  threads: "M4 6h16M4 12h16M4 18h10",
  activity: "M3 12h4l3-8 4 16 3-8h4",
  graph: "M3 4h7v7H3zM14 13h7v7h-7zM6.5 11v5.5H14",
  chart: "M4 20V4M4 20h16M8 16v-5M12 16V8M16 16v-8",
  plus: "M12 5v14M5 12h14",
  send: "M5 12h13M12 5l7 7-7 7",
  stop: "M7 7h10v10H7z",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4 4",
  close: "M6 6l12 12M18 6L6 18",
  menu: "M4 7h16M4 12h16M4 17h16",
  down: "M6 9l6 6 6-6",
  right: "M9 6l6 6-6 6",
  edit: "M4 20l1-4L16 5l3 3L8 19z",
  retry: "M4 12a8 8 0 1 1 3 6M4 18v-5h5",
  fork: "M7 4v16M7 12c0-4 10-1 10-7",
  erase: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  copy: "M9 9h10v11H9zM5 15V4h10",
  tool: "M9 4C6 4 7 12 4 12c3 0 2 8 5 8M15 4c3 0 2 8 5 8-3 0-2 8-5 8",
  shield: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 11.5l2.2 2.2L15.5 9.5",
  check: "M5 12l5 5 9-11",
  warn: "M12 4l9 16H3zM12 10v5M12 17v1",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
  moon: "M19 14A8 8 0 0 1 10 5a8 8 0 1 0 9 9z",
  upload: "M12 16V5M7 10l5-5 5 5M4 20h16",
  download: "M12 4v11M7 11l5 5 5-5M4 20h16",
  to_server: "M7 16a4 4 0 0 1-.4-8 5.5 5.5 0 0 1 10.7.6A3.8 3.8 0 0 1 17 16M12 21v-9M9 15l3-3 3 3",
  from_server: "M7 16a4 4 0 0 1-.4-8 5.5 5.5 0 0 1 10.7.6A3.8 3.8 0 0 1 17 16M12 12v9M9 18l3 3 3-3",
  compare: "M4 5h7v14H4zM13 5h7v14h-7z",
  document: "M6 3h8l4 4v14H6zM14 3v4h4M9.5 12h5M9.5 16h5",
  help: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 17v1",
  attach: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.5 3.5 0 0 1 5 5l-8.5 8.5a1.8 1.8 0 0 1-2.6-2.6L14.5 7.5",
  enlarge: "M14 4h6v6M20 4l-7 7M10 20H4v-6M4 20l7-7",
  more: "M5 12h.01M12 12h.01M19 12h.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
