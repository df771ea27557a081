// Package remedy holds the commands that messages suggest. They are in one place, so that a test
// can try each of them and a changed flag is changed everywhere. It imports no other package of
// ours.
package remedy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
)

// Commands are quoted command lines that can be pasted.
type Commands struct {
	Name         string // as which the plugin was called: "kubectl maint"
	Namespace    string // empty: the context's
	ClusterFlags string // flags that choose another cluster than the kubeconfig does; empty: none
}

// In are the commands for a namespace; empty: the context's.
func (c Commands) In(namespace string) Commands {
	c.Namespace = namespace
	return c
}

// line is a command about something in a namespace.
func (c Commands) line(format string, args ...any) string {
	if c.Namespace == "" {
		return c.plain(format, args...)
	}
	return c.plain("-n "+c.Namespace+" "+format, args...)
}

// plain is a command about something without a namespace.
func (c Commands) plain(format string, args ...any) string {
	if c.ClusterFlags == "" {
		return c.offline(format, args...)
	}
	return c.offline("%s %s", c.ClusterFlags, fmt.Sprintf(format, args...))
}

// offline is a command about files.
func (c Commands) offline(format string, args ...any) string {
	return fmt.Sprintf("'%s %s'", c.Name, fmt.Sprintf(format, args...))
}

// Abort ends a run.
func (c Commands) Abort(run string) string { return c.line("abort %s", run) }

// ShowRestore shows the restore data of a HibernatePlan.
func (c Commands) ShowRestore(plan string) string { return c.line("restore show %s", plan) }

// Adopt signs a record of the agent's.
func (c Commands) Adopt(object string) string { return c.line("adopt %s", object) }

// Allow permits change of an object for some time.
func (c Commands) Allow(object string) string {
	return c.line("allow %s --for 2h --reason …", object)
}

// Answer answers a question of a run, RUN or RUN/STEP, in one of two ways.
func (c Commands) Answer(question string) string {
	return c.Approve(question) + " or " + c.line("reject %s", question)
}

// Approve approves a question of a run, RUN or RUN/STEP.
func (c Commands) Approve(question string) string { return c.line("approve %s", question) }

// Describe tells everything about a plan or run.
func (c Commands) Describe(name string) string { return c.line("describe %s", name) }

// Doctor checks what a plan needs.
func (c Commands) Doctor(name string) string { return c.line("doctor %s", name) }

// Drain asks for a node.
func (c Commands) Drain(node string) string { return c.plain("drain %s", node) }

// DrainPlan shows what blocks a drain.
func (c Commands) DrainPlan(node string) string { return c.plain("drain %s --plan", node) }

// History shows how a plan's slots and runs ended.
func (c Commands) History(plan string) string { return c.line("history %s", plan) }

// ShowLedger shows the object of a plan's ledger as it is.
func (c Commands) ShowLedger(object string) string {
	return fmt.Sprintf("'%s get configmap %s -o yaml'", c.kubectl(), object)
}

// Grant grants the account of a plan what the plan needs.
func (c Commands) Grant(plan string) string {
	return fmt.Sprintf("'%s get configmap %s -o yaml | %s rbac -f - | %s apply -f -'", c.kubectl(), plan, c.Name, c.In("").kubectl())
}

// GrantIn gives an account rights on a resource in another namespace, or on one object of it, by a Role
// that is named after all of these.
func (c Commands) GrantIn(namespace, of, account, verbs, resource, object string) string {
	return c.In(namespace).grant("role", of, account, verbs, resource, object)
}

// GrantEverywhere gives an account rights on a resource in the whole cluster, or on one object of it, by
// a ClusterRole that is named after all of these.
func (c Commands) GrantEverywhere(of, account, verbs, resource, object string) string {
	return c.In("").grant("clusterrole", of, account, verbs, resource, object)
}

func (c Commands) grant(kind, of, account, verbs, resource, object string) string {
	role := "maint:" + of + ":" + account + ":" + strings.ReplaceAll(resource, "/", ".")
	only := ""
	if object != "" {
		role, only = role+":"+object, " --resource-name="+object
	}
	return c.reconcile("%s %s --verb=%s --resource=%s%s", kind, role, verbs, resource, only) + " and " +
		c.reconcile("%sbinding %s --%s=%s --serviceaccount=%s:%s", kind, role, kind, role, of, account)
}

// reconcile creates an object of RBAC, or adds what is missing where one of that name is there.
func (c Commands) reconcile(format string, args ...any) string {
	in := c.kubectl()
	return fmt.Sprintf("'%s create %s --dry-run=client -o yaml | %s auth reconcile -f -'", in, fmt.Sprintf(format, args...), in)
}

// DescribeNamespace shows what a namespace that is being deleted still waits for.
func (c Commands) DescribeNamespace(name string) string {
	return fmt.Sprintf("'%s describe namespace %s'", c.In("").kubectl(), name)
}

// TakeAnnotation takes an annotation off an object, KIND/NAME.
func (c Commands) TakeAnnotation(object, key string) string {
	return fmt.Sprintf("'%s annotate %s %s-'", c.kubectl(), object, key)
}

// kubectl is kubectl for the same cluster and namespace.
func (c Commands) kubectl() string {
	text := "kubectl"
	if c.ClusterFlags != "" {
		text += " " + c.ClusterFlags
	}
	if c.Namespace != "" {
		text += " -n " + c.Namespace
	}
	return text
}

// Hibernate puts the targets of a HibernatePlan to sleep.
func (c Commands) Hibernate(plan string) string { return c.line("hibernate %s", plan) }

// Install puts the agent into the cluster.
func (c Commands) Install() string { return c.plain("install --apply") }

// InstallIn installs the agent in a namespace.
func (c Commands) InstallIn(namespace string) string {
	return c.plain("install --apply --namespace %s", namespace)
}

// InstallWith changes an option of the agent in a namespace.
func (c Commands) InstallWith(namespace, option string) string {
	return c.plain("install --apply --namespace %s %s", namespace, option)
}

// List shows the plans of the namespace.
func (c Commands) List() string { return c.line("list") }

// ListOf lists the objects of a kind in the namespace: runs.
func (c Commands) ListOf(kind string) string { return c.line("list %s", kind) }

// ListAll shows the plans of the cluster.
func (c Commands) ListAll() string { return c.plain("list -A") }

// Lint reports all faults of a file.
func (c Commands) Lint() string { return c.offline("lint -f FILE") }

// New asks its way to a plan.
func (c Commands) New() string { return c.offline("new") }

// Release removes people's requests for nodes, by name.
func (c Commands) Release(nodes string) string { return c.plain("release %s", nodes) }

// ReleaseHold ends the hold of a HibernatePlan.
func (c Commands) ReleaseHold(plan string) string { return c.line("wake %s --release", plan) }

// ReleaseFor removes a requestor's requests for nodes.
func (c Commands) ReleaseFor(nodes, requestor string) string {
	return c.plain("release %s --requestor %s", nodes, requestor)
}

// Resume ends the pause of a plan, policy or node, or a run's suspend.
func (c Commands) Resume(name string) string { return c.line("resume %s", name) }

// ResumeAll ends the pause of a namespace.
func (c Commands) ResumeAll() string { return c.line("resume --all") }

// ResumeCluster ends the pause of the whole cluster.
func (c Commands) ResumeCluster() string { return c.plain("resume --all -A") }

// PauseCluster pauses the whole cluster.
func (c Commands) PauseCluster() string { return c.plain("pause --all -A") }

// Retry repeats what failed in a run.
func (c Commands) Retry(run string) string { return c.line("retry %s", run) }

// RollbackTo asks for a run that repeats an earlier run.
func (c Commands) RollbackTo(plan string) string { return c.line("rollback %s --to RUN", plan) }

// Schedule writes a plan.
func (c Commands) Schedule() string { return c.line("schedule") }

// Status shows the namespace.
func (c Commands) Status() string { return c.line("status") }

// StatusOf shows a plan, run or node.
func (c Commands) StatusOf(name string) string { return c.line("status %s", name) }

// Trigger asks for a run of a plan.
func (c Commands) Trigger(plan string) string { return c.line("trigger %s", plan) }

// TriggerOutside asks for a run that does not wait for a window.
func (c Commands) TriggerOutside(plan string) string {
	return c.line("trigger %s --outside-window --reason …", plan)
}

// Ask asks for a run of a plan with flags, each with a space before it: for a rollback to the run asOf
// where that is one.
func (c Commands) Ask(plan, asOf, flags string) string {
	if asOf != "" {
		return c.line("rollback %s --to %s%s", plan, asOf, flags)
	}
	return c.line("trigger %s%s", plan, flags)
}

// AskOutside is Ask for a run that does not wait for a window.
func (c Commands) AskOutside(plan, asOf, flags, reason string) string {
	return c.Ask(plan, asOf, flags+" --outside-window --reason "+cmp.Or(Word(reason), "…"))
}

// Unskip takes back the skips of a plan.
func (c Commands) Unskip(plan string) string { return c.line("unskip %s", plan) }

// Wake wakes the targets of a HibernatePlan.
func (c Commands) Wake(plan string) string { return c.line("wake %s", plan) }

// WakeFor wakes it for a day, whatever its schedule says.
func (c Commands) WakeFor(plan string) string { return c.line("wake %s --for 24h", plan) }

// Uninstall removes the agent of a namespace.
func (c Commands) Uninstall(namespace string) string {
	return c.plain("uninstall --apply --namespace %s", namespace)
}

// Why says why nothing happens to a plan or a node.
func (c Commands) Why(name string) string { return c.line("why %s", name) }

// FreezeNamespace closes a namespace for a while.
func (c Commands) FreezeNamespace(name string) string {
	return c.plain("freeze namespace/%s --for D --reason R", name)
}

// AllowUntil permits change of an object until an instant; the reason is quoted as a shell needs it.
func (c Commands) AllowUntil(object, until, reason string) string {
	return c.line("allow %s --until %s --reason %s", object, until, reason)
}

// FreezeUntil is AllowUntil for a freeze.
func (c Commands) FreezeUntil(object, until, reason string) string {
	return c.line("freeze %s --until %s --reason %s", object, until, reason)
}

// Unfreeze ends a freeze of a plan or a policy.
func (c Commands) Unfreeze(object string) string { return c.line("freeze %s --end", object) }

// WhyNode says why the node of a message is not given.
func (c Commands) WhyNode() string { return c.plain("why NODE") }

// Given are the flags that a command was called with, as one that it suggests repeats them: each with
// a space before it. Those of every command are left to ClusterFlags.
func Given(flags *pflag.FlagSet, without ...string) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || slices.Contains(without, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, several := f.Value.(pflag.SliceValue); several {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case value == f.NoOptDefVal:
				b.WriteString(" --" + f.Name)
			case f.NoOptDefVal != "":
				b.WriteString(" --" + f.Name + "=" + Word(value))
			default:
				b.WriteString(" --" + f.Name + " " + Word(value))
			}
		}
	})
	return b.String()
}

// AsAsked are the flags of Ask for another run like one that was asked for: dry or not, with its
// parameters, which a rollback takes from the run asOf.
func AsAsked(asOf string, parameters map[string]string, dry bool) string {
	var b strings.Builder
	if dry {
		b.WriteString(" --dry-run=run")
	}
	if asOf != "" {
		return b.String()
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		b.WriteString(" --param " + Word(name+"="+parameters[name]))
	}
	return b.String()
}

// Word is a word as a shell reads it. Messages put commands between single quotes, so others are used.
func Word(s string) string {
	special := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`'"\$&;|<>()*?[]{}~#!`+"`", r) }
	if !strings.ContainsFunc(s, special) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(s) + `"`
}

// CommandIn is the last quoted command of ours in a message; empty: none.
func CommandIn(message string) string {
	from := strings.LastIndex(message, "'kubectl maint ")
	if from < 0 {
		return ""
	}
	to := strings.Index(message[from+1:], "'")
	if to < 0 {
		return ""
	}
	return message[from : from+1+to+1]
}
