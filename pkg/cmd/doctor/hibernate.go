package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

// sleeper checks what one HibernatePlan needs. What sleeps is checked in any case.
func (o *options) sleeper(ctx context.Context, k *factory.Cluster, agent factory.AgentState, cm *corev1.ConfigMap, config *agentconfig.AgentConfig) {
	o.check = "plan"
	spec, faults := annotations.HibernatePlan(cm)
	if len(faults) > 0 {
		o.amiss("the plan is invalid: "+faults[0].String()+view.AndMore(len(faults)-1), "fix it; "+o.Suggest().Lint()+" tells all faults")
		o.restores(ctx, k, cm, nil)
		return
	}
	unready, account := o.standing(agent, cm), spec.Account()
	there, told := o.account(ctx, k, agent, cm, account)
	o.policies(ctx, k, agent, cm.Namespace, spec.Policies)
	if there {
		used := o.sleepConnectors(ctx, k, spec, cm.Namespace)
		o.reachedAll(ctx, k, agent, cm.Namespace, account, used)
		needs, open := rights.OfSleep(spec, cm.Namespace, used)
		if _, err := o.rights(ctx, k, cm.Name, "system:serviceaccount:"+cm.Namespace+":"+account, "targets", needs); err != nil {
			o.unknown("the rights of "+account, err)
		}
		o.open(open)
		o.targetHosts(ctx, k, spec, outboundOf(config, agent.Namespace))
		o.namespaces(ctx, k, spec)
	}
	o.restores(ctx, k, cm, o.targets(cm, spec))
	o.unready(unready, told)
}

// sleepConnectors are those that the plan's targets name. A fault of them or of their use is amiss.
func (o *options) sleepConnectors(ctx context.Context, k *factory.Cluster, spec hibernate.Spec, namespace string) map[string]connector.Connector {
	o.check = "connectors"
	used, faults := hibernate.UseConnectors(spec, o.findConnector(ctx, k, namespace))
	said := map[string]bool{}
	for _, f := range faults {
		if !said[f.Message] {
			o.amiss(f.String(), "fix or create the connector in namespace "+namespace+" (docs/hibernation-aws.md, docs/clusters.md)")
		}
		said[f.Message] = true
	}
	return used
}

// reachedAll checks what the connectors of a plan need in this cluster.
func (o *options) reachedAll(ctx context.Context, k *factory.Cluster, agent factory.AgentState, namespace, account string, used map[string]connector.Connector) {
	o.check = "connectors"
	for _, key := range slices.Sorted(maps.Keys(used)) {
		o.reached(ctx, k, agent, namespace, account, key, used[key])
	}
}

// reached checks what a connector needs in this cluster: its Secret, or a role for the account's
// token. Whether the other side accepts that, only the agent can see.
func (o *options) reached(ctx context.Context, k *factory.Cluster, agent factory.AgentState, namespace, account, key string, one connector.Connector) {
	switch {
	case one.Cluster != nil && one.Cluster.K8S != nil:
		ref := one.Cluster.K8S.KubeconfigRef
		o.secret(ctx, k, namespace, ref.Name, "the connector "+key, ref.DataKey())
	case one.Cluster != nil:
		o.good("the connector %s leads to the cluster %s of EKS", key, one.Cluster.EKS.Name)
	case one.Cloud.AWS.Auth.Static != nil:
		o.secret(ctx, k, namespace, one.Cloud.AWS.Auth.Static.SecretRef.Name, "the connector "+key, "accessKeyId", "secretAccessKey")
	default:
		o.role(ctx, k, namespace, account, key, *one.Cloud.AWS)
		o.tokens(ctx, k, agent, namespace, account)
	}
}

// secret checks whether a Secret has the keys that are read, as far as the user may see it.
func (o *options) secret(ctx context.Context, k *factory.Cluster, namespace, name, of string, keys ...string) {
	secret, err := k.Kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		o.amiss(fmt.Sprintf("the Secret %s/%s of %s is not there", namespace, name, of), "create it with the keys "+strings.Join(keys, ", "))
		return
	case err != nil:
		o.unknown(fmt.Sprintf("the Secret %s/%s of %s", namespace, name, of), k.Explain("it cannot be read", err))
		return
	}
	var lacks []string
	for _, key := range keys {
		if len(secret.Data[key]) == 0 {
			lacks = append(lacks, key)
		}
	}
	if len(lacks) > 0 {
		o.amiss(fmt.Sprintf("the Secret %s/%s of %s lacks %s", namespace, name, of, strings.Join(lacks, ", ")), "add it")
		return
	}
	o.good("%s has its Secret %s/%s", of, namespace, name)
}

// role checks whether the account names a role of AWS in the right AWS account.
func (o *options) role(ctx context.Context, k *factory.Cluster, namespace, account, key string, in connector.AWS) {
	const annotation = "eks.amazonaws.com/role-arn"
	object, err := k.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, account, metav1.GetOptions{})
	if err != nil { // that it is missing, or may not be read, is reported already
		return
	}
	arn := object.Annotations[annotation]
	of, is := connector.RoleAccount(arn)
	switch {
	case !is:
		o.amiss(fmt.Sprintf("ServiceAccount %s/%s names no role of AWS, which the connector %s takes", namespace, account, key), o.Suggest().In(namespace).Role(account, annotation, in.AccountID))
	case in.AssumeRoleARN == "" && of != in.AccountID:
		o.amiss(fmt.Sprintf("ServiceAccount %s/%s has a role of account %s, and the connector %s names account %s", namespace, account, of, key, in.AccountID), "name the account of the role, or a role of that account as assumeRoleArn")
	default:
		o.good("the connector %s reaches account %s in %s by the role of ServiceAccount %s/%s", key, in.AccountID, in.Region, namespace, account)
	}
}

// tokens checks whether the agent may request tokens of the account.
func (o *options) tokens(ctx context.Context, k *factory.Cluster, agent factory.AgentState, namespace, account string) {
	may, err := o.allowed(ctx, k, userOf(agent), authorizationv1.ResourceAttributes{Namespace: namespace, Resource: "serviceaccounts/token", Name: account, Verb: "create"})
	switch {
	case err != nil:
		o.unknown("whether the agent may ask for tokens", err)
	case !may:
		o.amiss(fmt.Sprintf("the agent may not ask for tokens of ServiceAccount %s/%s", namespace, account), o.Suggest().InstallWith(agent.Namespace, "--cloud")+" gives it that right")
	default:
		o.good("the agent may ask for tokens of ServiceAccount %s/%s", namespace, account)
	}
}

// namespaces checks whether the namespaces of targets in this cluster exist.
func (o *options) namespaces(ctx context.Context, k *factory.Cluster, spec hibernate.Spec) {
	o.check = "targets"
	for _, t := range spec.Targets {
		params, is := t.Params().(*hibernate.WorkloadParameters)
		if !is || t.ConnectorRef != nil {
			continue
		}
		for _, name := range params.Namespaces {
			_, err := k.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				o.amiss(fmt.Sprintf("the namespace %s of target %s is not there", name, t.Name), "create it, or take it out of the target's namespaces")
			case err != nil:
				o.unknown("the namespace "+name+" of target "+t.Name, k.Explain("it cannot be read", err))
			}
		}
	}
}

// targets reports how the agent sees each of them, and returns those that are amiss.
func (o *options) targets(cm *corev1.ConfigMap, spec hibernate.Spec) (bad map[string]bool) {
	o.check = "targets"
	seen := map[string]bool{}
	bad = map[string]bool{}
	for _, t := range annotations.ReadTargets(cm.Annotations[annotations.StatusTargets]) {
		name := document.Cut(t.Target, document.MaxNameLength)
		seen[name] = true
		text := fmt.Sprintf("target %s is %s", name, t.State)
		if t.Message != "" {
			text += ": " + o.AgentText(t.Message, o.Zone)
		}
		switch {
		case t.State == hibernate.Failed || t.State == hibernate.Aborted:
			o.amiss(text, "fix what it says, and "+o.Suggest().Trigger(cm.Name)+" tries it again at once")
		case t.Attempts > 0 && t.State != hibernate.Asleep && t.State != hibernate.Awake:
			o.amiss(fmt.Sprintf("%s (%s failed)", text, view.Counted(t.Attempts, "attempt")), "it is tried again by itself; at once: "+o.Suggest().Trigger(cm.Name))
		default:
			o.good("%s", text)
			continue
		}
		bad[t.Target] = true
	}
	for _, t := range spec.Targets {
		if !seen[t.Name] {
			o.good("target %s of type %s has not slept yet", t.Name, t.Type)
		}
	}
	return bad
}

// overdue is how long after its time something may still be asleep before it is reported (a guess:
// waking takes time).
const overdue = 15 * time.Minute

// restores checks whether what sleeping resources will be restored to still works; bad are targets
// that are amiss already.
func (o *options) restores(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap, bad map[string]bool) {
	o.check = "restore-data"
	list, err := k.RestoresOf(ctx, cm.Namespace, cm.Name)
	if err != nil {
		o.unknown("the restore data", err)
		return
	}
	recorded := map[string]bool{} // by the names of their objects
	for _, r := range list {
		if annotations.RestoreCopy(r.Object.Name) {
			continue
		}
		recorded[r.Object.Name] = true
		sleeping, _ := r.Count()
		wake := r.Record.Snapshot.WakeAt
		switch {
		case r.Fault != "":
			o.amiss(fmt.Sprintf("the restore data %s does not count: %s", r.Object.Name, r.Fault), "look at it with "+o.Suggest().ShowRestore(cm.Name)+", and if it is right, "+o.Suggest().Adopt(r.Object.Name))
		case sleeping > 0 && wake != nil && o.Now().Sub(*wake) > overdue && cm.Annotations[annotations.HoldState] == "":
			remedy := o.Suggest().Why(cm.Name) + " says what they wait for"
			if bad[r.Record.Target] { // why has the details
				remedy = "the problem of the target above keeps them asleep"
			}
			o.amiss(fmt.Sprintf("%s of target %s should have been awake by %s", view.Counted(sleeping, "resource"), r.Record.Target, instant.Both(*wake, o.Zone)), remedy)
		default:
			o.good("the restore data of target %s has %s", r.Record.Target, view.Counted(len(r.Record.Resources), "resource"))
		}
	}
	for _, t := range annotations.ReadTargets(cm.Annotations[annotations.StatusTargets]) {
		if t.State == hibernate.Asleep && !recorded[annotations.RestoreName(cm.Name, t.Target)] {
			o.amiss(fmt.Sprintf("target %s sleeps, and its restore data is gone: nobody knows how it was", t.Target), "wake it by hand, and say so with "+o.Suggest().Trigger(cm.Name))
		}
	}
	if len(list) == 0 && cmp.Or(hibernate.Phase(cm.Annotations[annotations.StatusPhase]), hibernate.Active) == hibernate.Active {
		o.good("nothing of the plan sleeps")
	}
}
