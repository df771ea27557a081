package plan

// What a step of a type does to the world, as the gates, the look after drift and the commands ask.
// They are asked of each record of a run again and again, so they are no columns of StepTypes; a
// test has a row for each type of that.

// ChangesNothing says whether a step of a type only waits, asks, measures or tells.
func ChangesNothing(stepType string) bool {
	switch stepType {
	case "suspend", "wait", "health-check", "prometheus", "notification", TypeApproval:
		return true
	}
	return false
}

// KeepsEffect says whether what a step of a type did is to stay as it is while the run lives, also where
// the step does not put it back.
func KeepsEffect(stepType string) bool { return stepType == TypeScale || stepType == TypeApply }

// ChangedObject is the property of a step of a type that names the object of which it changes
// fields; empty: it changes those of none. Where orTarget is so, that is the plan's target if
// nothing is given.
func ChangedObject(stepType string) (property string, orTarget bool) {
	switch stepType {
	case TypeScale, "patch-object":
		return "resource", false
	case TypeApply:
		return "object", false
	case "label", "annotate":
		return "object", true
	}
	return "", false
}
