// Package remedy holds the commands that messages suggest. They are in one place, so that a test
// can try each of them and a changed flag is changed everywhere.
package remedy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// Commands are quoted command lines that can be pasted.
type Commands struct {
	Name         string // as which the plugin was called: "kubectl maint"
	Namespace    string // empty: the context's
	ClusterFlags string // flags that choose another cluster or user than the kubeconfig does; empty: none
}

// In are the commands for a namespace; empty: the context's.
func (c Commands) In(namespace string) Commands {
	c.Namespace = namespace
	return c
}

// line is a command about something in a namespace.
func (c Commands) line(format string, args ...string) string {
	if c.Namespace == "" {
		return c.plain(format, args...)
	}
	return c.plain("-n %s "+format, append([]string{c.Namespace}, args...)...)
}

// plain is a command about something without a namespace.
func (c Commands) plain(format string, args ...string) string {
	return fmt.Sprintf("'%s %s%s'", c.Name, c.flags(), words(format, args...))
}

// flags are those that choose the cluster, with a space after them.
func (c Commands) flags() string {
	if c.ClusterFlags == "" {
		return ""
	}
	return c.ClusterFlags + " "
}

// AgentText is a text of the agent whose commands name the cluster and the user as these do: the agent does not know
// how its cluster is reached from here. Commands that name them already stay as they are.
func AgentText(c Commands, text string) string {
	own, quoted, piped := "'"+c.Name+" "+c.flags(), "'kubectl "+c.flags(), "| kubectl "+c.flags()
	return strings.NewReplacer(own, own, "'kubectl maint ", own, quoted, quoted, piped, piped, "'kubectl ", quoted, "| kubectl ", piped).Replace(text)
}

// offline is a command about files.
func (c Commands) offline(line string) string { return fmt.Sprintf("'%s %s'", c.Name, line) }

// words puts arguments into a command. Names come from documents and from other clusters, so each is
// escaped for the shell into which the command is pasted.
func words(format string, args ...string) string {
	said := make([]any, len(args))
	for i, a := range args {
		said[i] = intent.Word(a)
	}
	return fmt.Sprintf(format, said...)
}

// several is the format of names that stand one after another, and the names.
func several(names string) (format string, args []string) {
	args = strings.Fields(names)
	return strings.Repeat(" %s", len(args)), args
}

// Abort ends a run.
func (c Commands) Abort(run string) string { return c.line("abort %s", run) }

// ShowRestore shows the restore data of a HibernatePlan.
func (c Commands) ShowRestore(plan string) string { return c.line("restore show %s", plan) }

// Adopt signs a record of the agent's.
func (c Commands) Adopt(object string) string { return c.line("adopt %s", object) }

// AdoptAll shows the records that have no valid signature.
func (c Commands) AdoptAll() string { return c.line("adopt --all --dry-run=client") }

// Allow permits change of an object for some time.
func (c Commands) Allow(object string) string {
	return c.line("allow %s --for 2h --reason …", object)
}

// Answer answers a question of a run, RUN or RUN/STEP, in one of two ways.
func (c Commands) Answer(question string) string {
	return c.Approve(question) + " or " + c.line("reject %s", intent.Question(question))
}

// Approve approves a question of a run, RUN or RUN/STEP.
func (c Commands) Approve(question string) string {
	return c.line("approve %s", intent.Question(question))
}

// Describe tells everything about a plan or run.
func (c Commands) Describe(name string) string { return c.line("describe %s", name) }

// DoctorAll checks the agent and all that it needs.
func (c Commands) DoctorAll() string { return c.plain("doctor") }

// Doctor checks what one plan or policy needs.
func (c Commands) Doctor(name string) string { return c.line("doctor %s", name) }

// Drain asks for a node.
func (c Commands) Drain(node string) string { return c.plain("drain %s", node) }

// DrainPlan shows what blocks a drain.
func (c Commands) DrainPlan(node string) string { return c.plain("drain %s --plan", node) }

// History shows how a plan's slots and runs ended.
func (c Commands) History(plan string) string { return c.line("history %s", plan) }

// ShowLedger shows the object of a plan's ledger as it is.
func (c Commands) ShowLedger(object string) string {
	return c.kubectl("get configmap %s -o yaml", object)
}

// Grant grants the account of a plan what the plan needs.
func (c Commands) Grant(plan string) string {
	return fmt.Sprintf("'%s get configmap %s -o yaml | %s rbac -f - | %s apply -f -'", c.begin(), intent.Word(plan), c.Name, c.In("").begin())
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
		role, only = role+":"+object, words(" --resource-name=%s", object)
	}
	return c.reconcile(words(kind+" %s --verb=%s --resource=%s", role, verbs, resource)+only) + " and " +
		c.reconcile(words(kind+"binding %s --"+kind+"=%s --serviceaccount=%s", role, role, of+":"+account))
}

// reconcile creates an object of RBAC, or adds what is missing where one of that name is there.
func (c Commands) reconcile(object string) string {
	in := c.begin()
	return fmt.Sprintf("'%s create %s --dry-run=client -o yaml | %s auth reconcile -f -'", in, object, in)
}

// DescribeNamespace shows what a namespace that is being deleted still waits for.
func (c Commands) DescribeNamespace(name string) string {
	return c.In("").kubectl("describe namespace %s", name)
}

// TakeAnnotation takes an annotation off an object, KIND/NAME.
func (c Commands) TakeAnnotation(object, key string) string {
	return c.kubectl("annotate %s %s-", object, key)
}

// kubectl is a command of kubectl itself for the same cluster and namespace.
func (c Commands) kubectl(format string, args ...string) string {
	return fmt.Sprintf("'%s %s'", c.begin(), words(format, args...))
}

// begin is how such a command begins.
func (c Commands) begin() string {
	text := "kubectl"
	if c.ClusterFlags != "" {
		text += " " + c.ClusterFlags
	}
	if c.Namespace != "" {
		text += " -n " + intent.Word(c.Namespace)
	}
	return text
}

// Get lists the objects of a kind.
func (c Commands) Get(kind string) string { return c.kubectl("get %s", kind) }

// Role has a ServiceAccount act as a role of an account of AWS.
func (c Commands) Role(serviceAccount, annotation, account string) string {
	return c.kubectl("annotate serviceaccount %s %s=arn:aws:iam::%s:role/ROLE", serviceAccount, annotation, account)
}

// Scale starts two pods of a Deployment.
func (c Commands) Scale(deployment string) string {
	return c.kubectl("scale deployment %s --replicas=2", deployment)
}

// DescribeDeployment shows a Deployment with its Events.
func (c Commands) DescribeDeployment(name string) string {
	return c.kubectl("describe deployment %s", name)
}

// Logs shows the log of a Deployment.
func (c Commands) Logs(deployment string) string { return c.kubectl("logs deployment/%s", deployment) }

// DeleteLedger deletes the object of a plan's ledger.
func (c Commands) DeleteLedger(object string) string {
	return c.kubectl("delete configmap %s", object)
}

// GetLabels lists them with their labels.
func (c Commands) GetLabels(kind string) string { return c.kubectl("get %s --show-labels", kind) }

// DeleteNamespace deletes a namespace with all that is in it.
func (c Commands) DeleteNamespace(name string) string {
	return c.In("").kubectl("delete namespace %s", name)
}

// ClusterInfo tries whether the API server answers.
func (c Commands) ClusterInfo() string { return c.In("").kubectl("cluster-info") }

// Contexts lists the contexts of the kubeconfig: of the flags that choose a cluster, only that of the
// file counts.
func (c Commands) Contexts() string {
	return Commands{ClusterFlags: kubeconfigOf(c.ClusterFlags)}.kubectl("config get-contexts")
}

// kubeconfigOf is the flag --kubeconfig of flags whose values are escaped; empty: there is none.
func kubeconfigOf(flags string) string {
	const flag = "--kubeconfig "
	_, rest, found := strings.Cut(" "+flags, " "+flag)
	if !found {
		return ""
	}
	end := 0
	for ; end < len(rest) && rest[end] != ' '; end++ {
		if rest[end] == '\\' { // the next character belongs to the value
			end++
		}
	}
	return flag + rest[:min(end, len(rest))]
}

// CanI lists what somebody may do in the namespace.
func (c Commands) CanI() string { return c.kubectl("auth can-i --list") }

// Login is the advice for who has to log in.
func (c Commands) Login() string {
	return c.In("").kubectl("auth whoami") + " tries your credentials, " + c.Contexts() + " lists other contexts"
}

// Apply applies all manifests of a file.
func (c Commands) Apply(file string) string { return c.kubectl("apply -f %s", file) }

// Hibernate puts the targets of a HibernatePlan to sleep.
func (c Commands) Hibernate(plan string) string { return c.line("hibernate %s", plan) }

// HibernateFor puts them to sleep for two hours, whatever its schedule says.
func (c Commands) HibernateFor(plan string) string { return c.line("hibernate %s --for 2h", plan) }

// Install puts the agent into the cluster.
func (c Commands) Install() string { return c.plain("install --apply") }

// InstallIn installs the agent in a namespace.
func (c Commands) InstallIn(namespace string) string {
	return c.plain("install --apply --namespace %s", namespace)
}

// InstallWith changes an option of the agent in a namespace.
func (c Commands) InstallWith(namespace, option string) string {
	flag, value, _ := strings.Cut(option, " ")
	format, args := several(value)
	return c.plain("install --apply --namespace %s "+flag+format, append([]string{namespace}, args...)...)
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
func (c Commands) Release(nodes string) string {
	format, args := several(nodes)
	return c.plain("release"+format, args...)
}

// ReleaseHold ends the hold of a HibernatePlan.
func (c Commands) ReleaseHold(plan string) string { return c.line("wake %s --release", plan) }

// ReleaseFor removes a requestor's requests for nodes.
func (c Commands) ReleaseFor(nodes, requestor string) string {
	format, args := several(nodes)
	return c.plain("release"+format+" --requestor %s", append(args, requestor)...)
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

// StatusOf shows plans, runs or nodes, by name.
func (c Commands) StatusOf(names string) string {
	format, args := several(names)
	return c.line("status"+format, args...)
}

// Trigger asks for a run of a plan.
func (c Commands) Trigger(plan string) string { return c.line("trigger %s", plan) }

// Ask asks for a run of a plan with flags, each with a space before it: for a rollback to the run asOf
// where that is one.
func (c Commands) Ask(plan, asOf, flags string) string {
	if asOf != "" {
		return with(c.line("rollback %s --to %s", plan, asOf), flags)
	}
	return with(c.line("trigger %s", plan), flags)
}

// with is a command with flags, whose values are escaped already.
func with(command, flags string) string { return strings.TrimSuffix(command, "'") + flags + "'" }

// AskOutside is Ask for a run that does not wait for a window.
func (c Commands) AskOutside(plan, asOf, flags, reason string) string {
	return c.Ask(plan, asOf, flags+" --outside-window --reason "+intent.Word(cmp.Or(reason, intent.Unsaid)))
}

// Cordon keeps pods from coming to a node.
func (c Commands) Cordon(node string) string { return c.In("").kubectl("cordon %s", node) }

// Uncordon lets pods come to a node again.
func (c Commands) Uncordon(node string) string { return c.In("").kubectl("uncordon %s", node) }

// Unskip takes back the skips of a plan.
func (c Commands) Unskip(plan string) string { return c.line("unskip %s", plan) }

// Wake wakes the targets of a HibernatePlan.
func (c Commands) Wake(plan string) string { return c.line("wake %s", plan) }

// WakeShortly wakes it for two hours, whatever its schedule says.
func (c Commands) WakeShortly(plan string) string { return c.line("wake %s --for 2h", plan) }

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

// AllowUntil permits change of an object until an instant.
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

// OfHibernatePlan says what there is to a HibernatePlan that is named where a plan with runs is meant, or
// where policies are asked whether change is permitted.
func OfHibernatePlan(c Commands, plan string, policies bool) string {
	if policies {
		return c.Why(plan) + " says why it sleeps or is awake, and whether policies permit its sleep"
	}
	return "a HibernatePlan has no runs: " + c.Describe(plan) + " shows its targets, and " + c.Trigger(plan) + " tries again what failed of them"
}

// Upgrade says how to see the version of the agent of a namespace, and how to get a newer one.
func Upgrade(c Commands, namespace string) string {
	return c.DoctorAll() + " shows its version, and " + c.InstallIn(namespace) + " upgrades it"
}

// Unconfigured says that the configuration of the agent of a namespace is gone, what is in force, and
// how to get it back; empty: it is not gone. how is annotations.HeartbeatConfiguration.
func Unconfigured(c Commands, namespace, how string) string {
	gone, back := "the agent's configuration, ConfigMap "+namespace+"/"+annotations.AgentConfigName+", ", "apply yours again, or get the usual one by "+c.InstallIn(namespace)
	switch how {
	case annotations.ConfigurationDeleted:
		return gone + "was deleted: what the agent took up before stays in force until it restarts, and after a restart the defaults hold, without your denied steps and limits; " + back
	case annotations.ConfigurationLost:
		return gone + "is gone, and the defaults are in force, without the denied steps and limits that it may have had; " + back
	}
	return ""
}

// Unlabelled says that the configuration of the agent of a namespace lacks the label by which the agent finds
// it, what is in force, and how to put the label back; empty: it has the label.
func Unlabelled(c Commands, namespace string, labels map[string]string) string {
	if labels[annotations.LabelKind] == annotations.KindAgentConfig {
		return ""
	}
	label := annotations.LabelKind + "=" + annotations.KindAgentConfig
	return fmt.Sprintf("the agent's configuration, ConfigMap %s/%s, lacks the label %s, so the agent does not read it: what it took up before stays in force until it restarts, and after a restart the defaults hold, without your denied steps and limits; %s puts the label back",
		namespace, annotations.AgentConfigName, label, c.In(namespace).kubectl("label --overwrite configmap %s %s", annotations.AgentConfigName, label))
}

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
				b.WriteString(" --" + f.Name + "=" + intent.Word(value))
			default:
				b.WriteString(" --" + f.Name + " " + intent.Word(value))
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
		b.WriteString(" --param " + intent.Word(name+"="+parameters[name]))
	}
	return b.String()
}

// CommandIn is the last quoted command of ours in a message; empty: none.
func CommandIn(message string) string {
	from := strings.LastIndex(message, "'kubectl maint ")
	if from < 0 {
		return ""
	}
	for to := from + 1; to < len(message); to++ {
		switch message[to] {
		case '\\': // the next character belongs to a name
			to++
		case '\'':
			return message[from : to+1]
		}
	}
	return ""
}
