package calendar

import (
	"strings"
	"time"
)

// counts says how much there is.
func (p Page) counts() string {
	n := map[Kind]int{}
	for _, e := range p.Entries {
		n[e.Kind]++
	}
	var parts []string
	for _, k := range []Kind{Window, Freeze, Sleep, Slot} {
		if n[k] > 0 {
			parts = append(parts, countOf(n[k], string(k)))
		}
	}
	if len(parts) == 0 {
		return "nothing in this time"
	}
	text := strings.Join(parts, ", ")
	if p.lead != "" {
		text += ". " + p.lead
	}
	return text
}

// standing is how an owner stands at the page's now, and what comes next.
type standing struct {
	owner   Owner
	class   string // open, frozen, closed, asleep, or empty for a plan
	present string
	next    string
}

// standings are those of all owners; none where now is not on the page.
func (p Page) standings() []standing {
	if !p.current() {
		return nil
	}
	of := map[Owner][]Entry{}
	for _, e := range p.Sorted() {
		of[e.Owner] = append(of[e.Owner], e)
	}
	out := make([]standing, 0, len(p.Owners))
	for _, o := range p.Owners {
		if s := p.standing(o, of[o]); o.Kind != "namespace" || s.class != "" {
			out = append(out, s) // a namespace that closes nothing now says nothing
		}
	}
	return out
}

func (p Page) standing(o Owner, entries []Entry) standing {
	loc := p.clock()
	s := standing{owner: o, next: "–", present: "–"}
	if o.Kind == "policy" {
		s.class, s.present = "closed", "closed"
	}
	waits := Window
	switch o.Kind {
	case "plan", KindPlans:
		waits = Slot
	case "hibernate-plan":
		waits = Sleep
	}
	found := false
	for _, e := range entries {
		running := e.Kind != Slot && !p.Now.Before(e.Start) && p.Now.Before(e.End)
		switch {
		case running && e.Kind == Freeze:
			s.class, s.present = "frozen", "frozen"+e.untilWords(loc)+words(": ", e.Note)
		case running && e.Kind == Sleep && !e.Idle:
			s.class, s.present = "asleep", "asleep"+e.untilWords(loc)
		case running && e.Kind == Sleep:
		case running && s.class != "frozen":
			s.class, s.present = "open", "open"+e.untilWords(loc)
		case e.Kind == waits && !found && !e.Idle && (e.Start.After(p.Now) || e.Kind == Slot && e.Start.Equal(p.Now)):
			s.next, found = e.local(loc), true
		}
	}
	return s
}

func (e Entry) untilWords(loc *time.Location) string {
	if e.Unending {
		return ", no end known"
	}
	end := e.End.In(loc)
	return " until " + end.Format("Mon 2006-01-02 "+hours(end)+" MST")
}

func words(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
