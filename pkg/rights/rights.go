// Package rights says which rights the account of a plan needs for what the plan does. It
// knows the plan alone: what is decided in a run, by an expression, it names and leaves open.
package rights

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// Need is a right on objects of a kind, of which For needs it.
type Need struct {
	Namespace        string // empty: in the whole cluster
	APIVersion, Kind string
	Subresource      string // scale, say; empty: the object itself
	Name             string // of the one object; empty: any
	Verbs            []string
	For              string // step roll/restart
}

// What the rights are for that a plan's account needs on the target before a run, and for its mirror,
// which only a plan that names a prefix asks for.
const (
	ForTarget = "target"
	ForLabels = "trigger labels"
	ForMirror = "mirror"
)

// OfIntents is the group and version of the resources whose verbs the admission policies ask for. No
// API server serves them, and without the policies nobody needs them.
const OfIntents = "maint.dev/v1alpha1"

// Of are the rights that a plan's account needs in the plan's namespace, in others, and in
// the cluster; open is what can be said only when a run is there. Of the connectors that the
// plan names those are told that are known, by connector.Reference.Key.
func Of(t plan.Tree, namespace string, known map[string]connector.Connector) (needs []Need, open []string) {
	c := collector{namespace: namespace, spec: t.Spec.Defaulted(), connectors: known}
	c.triggers(t.Spec.MirrorPrefix != "")
	t.Spec = c.spec
	t.WalkClusters(c.step)
	return c.needs, c.open
}

type collector struct {
	namespace  string
	spec       plan.Spec
	connectors map[string]connector.Connector
	at         string
	needs      []Need
	open       []string
}

// object is a reference as properties hold it.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
}

func expression(text string) bool { return strings.Contains(text, "${") }

// need notes a right on an object. Lists and watches are not by name, and neither is what is
// made anew.
func (c *collector) need(o object, subresource string, verbs ...string) {
	if expression(o.Kind) || expression(o.APIVersion) || expression(o.Namespace) {
		where := ""
		if o.Namespace != "" {
			where = " of namespace " + o.Namespace
		}
		c.openly("%s on %s %s%s; only a run knows which objects these are", strings.Join(verbs, ", "), o.APIVersion, o.Kind, where)
		return
	}
	n := Need{Namespace: c.namespace, APIVersion: o.APIVersion, Kind: o.Kind, Subresource: subresource, Name: o.Name, For: c.at}
	switch {
	case ClusterScoped(o.Kind), o.Namespace == "*":
		n.Namespace = ""
	case o.Namespace != "":
		n.Namespace = o.Namespace
	}
	if expression(n.Name) {
		n.Name = ""
	}
	var named, all []string
	for _, v := range verbs {
		if n.Name != "" && slices.Contains([]string{"get", "patch", "update", "delete", "override"}, v) {
			named = append(named, v)
		} else {
			all = append(all, v)
		}
	}
	if len(named) > 0 {
		n.Verbs = named
		c.needs = append(c.needs, n)
	}
	if len(all) > 0 {
		n.Name, n.Verbs = "", all
		c.needs = append(c.needs, n)
	}
}

// ClusterScoped says of the usual kinds without a namespace that they have none.
func ClusterScoped(kind string) bool {
	return slices.Contains([]string{
		"Node", "Namespace", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "StorageClass", "PriorityClass",
		"MachineConfigPool", "MachineConfig", "NodePool", "EC2NodeClass", "ClusterPolicy", "VolumeSnapshotClass", "APIService", "FunctionRevision",
	}, kind)
}

func (c *collector) triggers(mirror bool) {
	if target, on := c.spec.Target, c.spec.ConnectorRef; target != nil && on != nil {
		c.at = ForTarget
		c.elsewhere(*on)
	} else if target != nil {
		c.at = ForTarget
		o := object{APIVersion: target.APIVersion, Kind: target.Kind, Name: target.Name}
		c.need(o, "", "get")
		if len(c.spec.Triggers.Labels) > 0 {
			c.at = ForLabels
			c.need(o, "", "get", "patch", "list", "watch")
		}
		if mirror {
			c.at = ForMirror
			c.need(o, "", "patch")
		}
	}
	for _, w := range c.spec.Triggers.Watch {
		c.at = "trigger watch"
		c.need(object{APIVersion: w.APIVersion, Kind: w.Kind, Namespace: w.Namespace}, "", "list", "watch")
	}
}

// as reads a part of a step's properties.
func as[T any](s plan.Step, name string) (out T) {
	b, err := json.Marshal(s.Properties[name])
	if err == nil {
		_ = json.Unmarshal(b, &out) // the validator has refused what does not fit
	}
	return out
}

// about is the object that a property names, else the plan's target.
func (c *collector) about(s plan.Step, name string) object {
	o := as[object](s, name)
	if target := c.spec.Target; o.Kind == "" && target != nil {
		o.APIVersion, o.Kind, o.Name = target.APIVersion, target.Kind, target.Name
	}
	return o
}

const (
	apps  = "apps/v1"
	core  = "v1"
	batch = "batch/v1"
)

// elsewhere is what works on another cluster: its rights are of that one. Here its connector
// needs the Secret with its kubeconfig, or what its account of a cloud needs.
func (c *collector) elsewhere(on connector.Reference) {
	c.openly("its rights are those of the account on the other cluster, %s", on.Name)
	cluster := c.connectors[on.Key()].Cluster
	switch {
	case cluster == nil:
		c.openly("and here those that the connector %s needs: get on the Secret with its kubeconfig, or what its account of AWS is reached by", on.Name)
	case cluster.K8S != nil:
		c.secret(cluster.K8S.KubeconfigRef.Name)
	case cluster.EKS != nil:
		c.openly("its role in AWS needs eks:DescribeCluster on the cluster %s, and there an access entry (docs/clusters.md)", cluster.EKS.Name)
		if provider, is := cluster.Provider(); is {
			c.cloud(provider)
		}
	}
}

// cloud is an account of a cloud, whose rights are those of a role there.
func (c *collector) cloud(in connector.Reference) {
	account := c.connectors[in.Key()].Cloud
	switch {
	case account == nil || account.AWS == nil:
		c.openly("the connector %s may need get on a Secret with keys here", in.Name)
	case account.AWS.Auth.Static != nil:
		c.secret(account.AWS.Auth.Static.SecretRef.Name)
	default:
		c.openly("the connector %s takes the role that the ServiceAccount is annotated with, which needs 'kubectl maint install --cloud' (docs/hibernation-aws.md)", in.Name)
	}
}

// onCloud is a step in an account of a cloud.
func (c *collector) onCloud(s plan.Step) {
	c.openly("its rights are those of its role in AWS: rds:DescribeDBInstances, rds:DescribeDBClusters, rds:DescribeDBSnapshots, rds:DescribeDBClusterSnapshots, rds:CreateDBSnapshot, rds:CreateDBClusterSnapshot, rds:AddTagsToResource%s", deletes(s))
	if s.ConnectorRef != nil {
		c.cloud(*s.ConnectorRef)
	}
}

func deletes(s plan.Step) string {
	if s.Properties["retain"] == nil {
		return ""
	}
	return ", rds:DeleteDBSnapshot, rds:DeleteDBClusterSnapshot"
}

func (c *collector) secret(name string) {
	c.need(object{APIVersion: core, Kind: "Secret", Name: name}, "", "get")
}

// openly notes once what no Role here says.
func (c *collector) openly(format string, args ...any) {
	if text := c.at + ": " + fmt.Sprintf(format, args...); !slices.Contains(c.open, text) {
		c.open = append(c.open, text)
	}
}

// step takes in one step. Steps on another cluster need their rights there.
func (c *collector) step(s plan.Step, on *connector.Reference) {
	c.at = "step " + s.Name
	if on != nil {
		c.elsewhere(*on)
		return
	}
	for _, r := range s.Requires {
		verb := "list"
		if r.ObjectName != "" {
			verb = "get"
		}
		c.need(object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.ObjectName}, "", verb)
	}
	switch s.Type {
	case "label", "annotate":
		c.write(s, c.about(s, "object"), "get", "patch")
	case "patch-object":
		c.write(s, c.about(s, "resource"), "get", "patch")
	case "apply-object":
		c.apply(s)
	case plan.TypeScale:
		c.scale(s)
	case plan.TypeHoldOwners:
		o := c.about(s, "object")
		c.need(o, "", "get")
		c.openly("get, list, watch, patch on the Kustomization, HelmRelease or Application that owns %s/%s, in its namespace", o.Kind, o.Name)
	case "wait":
		c.waits(s)
	case "delete-object":
		c.need(as[object](s, "resource"), "", "get", "delete", "list", "watch")
	case "restart":
		c.need(as[object](s, "resource"), "", "get", "patch", "list", "watch")
	case "health-check":
		c.health(s)
	case plan.TypeForEach:
		c.loop(s)
	default:
		c.work(s)
	}
}

// write is a step that changes an object, and may put it back.
func (c *collector) write(s plan.Step, o object, verbs ...string) {
	if plan.Restores(s) { // it is watched while a run lives
		verbs = append(verbs, "list", "watch")
	}
	c.need(o, "", verbs...)
}

// waits looks at the object that it names, or at the node of the rollout that it stands in.
func (c *collector) waits(s plan.Step) {
	o := object{APIVersion: core, Kind: "Node"}
	if s.Properties["resource"] != nil {
		o = as[object](s, "resource")
	}
	c.need(o, "", "get", "list", "watch")
}

func (c *collector) apply(s plan.Step) {
	applied := as[struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   object `json:"metadata"`
	}](s, "object")
	verbs := []string{"get", "create", "patch", "list", "watch"}
	c.need(object{APIVersion: applied.APIVersion, Kind: applied.Kind, Name: applied.Metadata.Name, Namespace: applied.Metadata.Namespace}, "", verbs...)
}

func (c *collector) scale(s plan.Step) {
	o := as[object](s, "resource")
	c.need(o, "scale", "get", "patch")
	if plan.Restores(s) {
		c.need(o, "", "get", "list", "watch")
	}
}

func (c *collector) health(s plan.Step) {
	picks := as[object](s, "selector")
	switch {
	case as[object](s, "resource").Kind != "":
		c.need(as[object](s, "resource"), "", "get", "list", "watch")
	case picks.Kind != "":
		c.need(picks, "", "get", "list", "watch")
	default:
		for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
			c.need(object{APIVersion: apps, Kind: kind, Namespace: picks.Namespace}, "", "get", "list", "watch")
		}
		c.need(object{APIVersion: batch, Kind: "Job", Namespace: picks.Namespace}, "", "get", "list", "watch")
	}
}

func (c *collector) loop(s plan.Step) {
	inner := maps.Clone(s.Properties)
	delete(inner, "when")       // asked of what is listed
	b, _ := json.Marshal(inner) //nolint:errchkjson // it was read from JSON
	o := object{Namespace: text(s, "namespace"), APIVersion: text(s, "apiVersion"), Kind: text(s, "kind")}
	verbs := []string{"list"}
	if text(s, "until") != "" {
		verbs = append(verbs, "watch")
	}
	if text(s, "until") != "" || strings.Contains(string(b), "each.") {
		verbs = append([]string{"get"}, verbs...)
	}
	c.need(o, "", verbs...)
}

func text(s plan.Step, name string) string {
	v, _ := s.Properties[name].(string)
	return v
}
