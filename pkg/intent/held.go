package intent

// SomebodyHolds begins what is said of a hold of a HibernatePlan.
const SomebodyHolds = "somebody holds it"

// Held says of a HibernatePlan that somebody holds it asleep, or awake.
func Held(asleep bool) string {
	if asleep {
		return SomebodyHolds + " asleep"
	}
	return SomebodyHolds + " awake"
}
