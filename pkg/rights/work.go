package rights

import (
	"cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// work is a step whose objects are not named in it: Jobs, pods, nodes, Secrets.
func (c *collector) work(s plan.Step) {
	switch s.Type {
	case "job":
		c.need(object{APIVersion: batch, Kind: "Job"}, "", "create", "get", "list", "watch", "delete")
		c.need(object{APIVersion: core, Kind: "Pod"}, "", "list")
		c.need(object{APIVersion: core, Kind: "Pod"}, "log", "get")
	case "exec":
		c.need(object{APIVersion: core, Kind: "Pod"}, "", "get", "list")
		c.need(object{APIVersion: core, Kind: "Pod"}, "exec", "get", "create")
	case plan.TypeBackup:
		c.backup(s)
	case "webhook", "prometheus", "silence":
		c.headers(s)
	case plan.TypeFunction:
		c.function(called{FunctionRef: as[*plan.FunctionRef](s, "functionRef"), Credentials: as[[]plan.FunctionCredential](s, "credentials"), TLS: as[plan.FunctionTLS](s, "tls")}, "")
	case plan.TypePipeline:
		for _, f := range as[[]called](s, "functions") {
			c.function(f, ", function "+f.Name)
		}
	case plan.TypeHibernate, plan.TypeWake:
		c.hold(text(s, "plan"))
	case "cordon", "uncordon", "drain", plan.TypeForEachNode:
		c.nodes(s)
	}
}

// hold are the rights of a step that holds a HibernatePlan. The verb is asked for by the admission
// policies; on all plans of a namespace it would be too much.
func (c *collector) hold(name string) {
	c.need(object{APIVersion: core, Kind: "ConfigMap", Name: name}, "", "get", "patch", "list", "watch")
	if expression(name) {
		c.openly("with the admission policies, override on plans.maint.dev of the HibernatePlan %s; only a run knows which one that is", name)
		return
	}
	c.need(object{APIVersion: OfIntents, Kind: "Plan", Name: name}, "", "override")
}

// nodes are the rights of steps on nodes, in the whole cluster.
func (c *collector) nodes(s plan.Step) {
	c.need(object{APIVersion: core, Kind: "Node"}, "", "get", "list", "watch", "patch")
	if s.Type != "drain" {
		return
	}
	const everywhere = "*"
	verbs := []string{"list", "watch"}
	if text(s, "onTimeout") == "force" {
		verbs = append(verbs, "delete")
	}
	c.need(object{APIVersion: core, Kind: "Pod", Namespace: everywhere}, "", verbs...)
	c.need(object{APIVersion: core, Kind: "Pod", Namespace: everywhere}, "eviction", "create")
	c.need(object{APIVersion: apps, Kind: "DaemonSet", Namespace: everywhere}, "", "get")
}

func (c *collector) backup(s plan.Step) {
	if s.OnCloud() {
		c.onCloud(s)
		return
	}
	if text(s, "method") == plan.MethodVelero {
		c.need(object{APIVersion: "velero.io/v1", Kind: "Backup", Namespace: cmp.Or(text(s, "veleroNamespace"), "velero")}, "", "get", "list", "watch", "create")
		return
	}
	verbs := []string{"list", "watch", "create"}
	if s.Properties["retain"] != nil {
		verbs = append(verbs, "delete")
	}
	c.need(object{APIVersion: "snapshot.storage.k8s.io/v1", Kind: "VolumeSnapshot"}, "", verbs...)
	c.need(object{APIVersion: core, Kind: "PersistentVolumeClaim"}, "", "list")
	if name := text(s, "component"); name != "" { // which of them it is, is found out in this order
		c.need(object{APIVersion: apps, Kind: "StatefulSet", Name: name}, "", "get")
		c.need(object{APIVersion: apps, Kind: "Deployment", Name: name}, "", "get")
		c.need(object{APIVersion: core, Kind: "PersistentVolumeClaim", Name: name}, "", "get")
	}
}

// headers are texts, or name a Secret.
func (c *collector) headers(s plan.Step) {
	for _, value := range as[map[string]any](s, "headers") {
		header, _ := value.(map[string]any)
		ref, _ := header["secretKeyRef"].(map[string]any)
		if name, _ := ref["name"].(string); name != "" {
			c.need(object{APIVersion: core, Kind: "Secret", Name: name}, "", "get")
		}
	}
}

// called is what rights depend on of a function that a step calls.
type called struct {
	Name        string                    `json:"name"`
	FunctionRef *plan.FunctionRef         `json:"functionRef"`
	Credentials []plan.FunctionCredential `json:"credentials"`
	TLS         plan.FunctionTLS          `json:"tls"`
}

// function is one function that a step calls; which tells it from others of the step.
func (c *collector) function(f called, which string) {
	for _, credential := range f.Credentials {
		c.need(object{APIVersion: core, Kind: "Secret", Name: credential.SecretName}, "", "get")
	}
	if f.TLS.SecretName != "" {
		c.need(object{APIVersion: core, Kind: "Secret", Name: f.TLS.SecretName}, "", "get")
	}
	if f.FunctionRef != nil {
		c.need(object{APIVersion: "pkg.crossplane.io/v1", Kind: "FunctionRevision"}, "", "list")
	}
	c.open = append(c.open, c.at+which+": get and list on what the function requires, get, create and patch on what it desires")
}
