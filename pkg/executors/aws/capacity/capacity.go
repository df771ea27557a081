// Package capacity reads and changes the sizes of groups of instances.
package capacity

import "fmt"

// Size is the size of a group, as restore data holds it.
type Size struct {
	Min     int32 `json:"min"`
	Desired int32 `json:"desired"`
	Max     int32 `json:"max"`
}

// None says whether a group of that size has no instances.
func (s Size) None() bool { return s.Min == 0 && s.Desired == 0 }

func (s Size) String() string { return fmt.Sprintf("min %d, desired %d", s.Min, s.Desired) }

// Within is a size that fits below the group's present max: sleep did not change the max, so
// whoever set it since is obeyed. why says what differs from the old size; empty: nothing.
func (s Size) Within(most int32) (out Size, why string) {
	out = Size{Min: min(s.Min, most), Desired: min(s.Desired, most), Max: most}
	switch {
	case most == 0 && !s.None():
		return out, fmt.Sprintf("it was at %s and cannot be put back: its max is 0 by now", s)
	case out.Min != s.Min || out.Desired != s.Desired:
		why = fmt.Sprintf("its max is %d by now", most)
	}
	if out.Desired < out.Min { // somebody edited the restore data
		out.Desired, why = out.Min, fmt.Sprintf("desired cannot be less than min (max is %d)", most)
	}
	if why == "" {
		return out, ""
	}
	return out, fmt.Sprintf("it was at %s and is put back at %s: %s", s, out, why)
}
