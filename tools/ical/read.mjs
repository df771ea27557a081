// Prints the events of an iCalendar feed on standard input as ical.js
// understands them, one JSON object a line.
import { readFileSync } from "node:fs";
import ICAL from "ical.js";

const feed = new ICAL.Component(ICAL.parse(readFileSync(0, "utf8")));
for (const component of feed.getAllSubcomponents("vevent")) {
  const event = new ICAL.Event(component, { strictExceptions: true });
  console.log(
    JSON.stringify({
      uid: event.uid,
      start: event.startDate.toJSDate().toISOString(),
      end: event.endDate.toJSDate().toISOString(),
      zone: event.startDate.zone.tzid,
      stamp: component.getFirstPropertyValue("dtstamp").toJSDate().toISOString(),
      summary: event.summary,
      description: event.description,
      status: component.getFirstPropertyValue("status"),
    }),
  );
}
