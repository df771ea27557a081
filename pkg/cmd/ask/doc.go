// Package ask holds the commands that write an intent on a plan, a policy or a run.
package ask
