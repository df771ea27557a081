package agentconfig

// Types of conditions that the agent sets on its configuration, and that commands look for.
const (
	ClockDoubt     = "ClockDoubt"     // nothing starts, since its clock is in doubt
	NodesForbidden = "NodesForbidden" // it may not write nodes, and carries no request for one out
	DryRun         = "DryRun"         // it is to change nothing
)
