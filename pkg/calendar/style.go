package calendar

// The colours: text has a contrast of at least 4.5 to 1 to what it stands on,
// and bars of 3 to 1, in both themes (WCAG 2.2 AA); freezes differ from windows
// by their hatching too, idle slots from others by being hollow.
const svgStyle = `
.maint{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Ubuntu,"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
.maint text{font-size:11px;fill:#1f2328}
.maint .h1{font-size:24px;font-weight:600}
.maint .lead{font-size:14px}
.maint .muted,.maint .axis,.maint .time{fill:#57606a}
.maint .muted{font-size:12px}
.maint .axis{font-size:10px;text-anchor:middle}
.maint .left,.maint .clock{text-anchor:end}
.maint .clock{fill:#9a3412;font-weight:600}
.maint .week,.maint .day{font-size:13px;font-weight:600}
.maint .is-today{fill:#0b57b0}
.maint .owner{font-size:12px}
.maint .policy,.maint .namespace{font-weight:600}
.maint .paper{fill:#ffffff}
.maint .today{fill:#e8f1fd}
.maint .weekend{fill:#f5f6f8}
.maint .outside{fill:#ffffff;fill-opacity:.75}
.maint .divider{stroke:#d6dbe1}
.maint .rule{stroke:#b9c0c8}
.maint .between{stroke:#e1e5ea}
.maint .window{fill:#1c7a55}
.maint .in-window{fill:#ffffff}
.maint .freeze-base{fill:#ffece2}
.maint .freeze{stroke:#b8461b}
.maint .hatch{stroke:#f0a783;stroke-width:3}
.maint .in-freeze{fill:#6d2306;font-weight:600;paint-order:stroke;stroke:#ffece2;stroke-width:4px;stroke-linejoin:round}
.maint .slot{fill:#5a3dbf;stroke:#5a3dbf;stroke-width:1.5}
.maint .idle{fill:#ffffff}
.maint .now{stroke:#c3213a;stroke-width:2}
.maint .now-head{fill:#c3213a}
@media (prefers-color-scheme:dark){
.maint text{fill:#e6e9ee}
.maint .muted,.maint .axis,.maint .time{fill:#a3adb8}
.maint .clock{fill:#ffb38a}
.maint .is-today{fill:#8fc2ff}
.maint .paper{fill:#0f141a}
.maint .today{fill:#16283f}
.maint .weekend{fill:#161c24}
.maint .outside{fill:#0f141a}
.maint .divider{stroke:#2d3642}
.maint .rule{stroke:#465161}
.maint .between{stroke:#27303b}
.maint .window{fill:#46c08f}
.maint .in-window{fill:#06251a}
.maint .freeze-base{fill:#3b1e12}
.maint .freeze{stroke:#f08a5b}
.maint .hatch{stroke:#8a4526}
.maint .in-freeze{fill:#ffdccb;stroke:#3b1e12}
.maint .slot{fill:#b9a5ff;stroke:#b9a5ff}
.maint .idle{fill:#0f141a}
.maint .now{stroke:#ff7686}
.maint .now-head{fill:#ff7686}
}
`

const svgPatterns = `<defs><pattern id="maint-hatch" width="9" height="9" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="1.5" y1="0" x2="1.5" y2="9"/></pattern></defs>
`

// svgFailedStyle is for pages with slots that needed somebody.
const svgFailedStyle = `
.maint .slot.failed{fill:#b3261e;stroke:#b3261e}
.maint .slot.idle.failed{fill:#ffffff}
@media (prefers-color-scheme:dark){
.maint .slot.failed{fill:#ff8a80;stroke:#ff8a80}
.maint .slot.idle.failed{fill:#0f141a}
}
`

// svgSleepStyle is for pages on which something is hibernated.
const svgSleepStyle = `
.maint .sleep{fill:#3b5b8c;stroke:#3b5b8c;stroke-width:1.5}
.maint .sleep.idle{fill:#ffffff;stroke-dasharray:3 2}
.maint .in-sleep{fill:#ffffff}
@media (prefers-color-scheme:dark){
.maint .sleep{fill:#8fb0e8;stroke:#8fb0e8}
.maint .sleep.idle{fill:#0f141a}
.maint .in-sleep{fill:#0a1a33}
}
`
