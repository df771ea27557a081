package agenttest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind that the cluster serves.
type Kind struct {
	Group, Version, Kind, Resource string
	Namespaced                     bool
}

func builtIn() []Kind {
	return []Kind{
		{"", "v1", "ConfigMap", "configmaps", true},
		{"", "v1", "Secret", "secrets", true},
		{"", "v1", "ServiceAccount", "serviceaccounts", true},
		{"", "v1", "Pod", "pods", true},
		{"", "v1", "Node", "nodes", false},
		{"", "v1", "Namespace", "namespaces", false},
		{"apps", "v1", "Deployment", "deployments", true},
		{"apps", "v1", "DaemonSet", "daemonsets", true},
		{"batch", "v1", "CronJob", "cronjobs", true},
		{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true},
		{"coordination.k8s.io", "v1", "Lease", "leases", true},
		{"authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false},
		{"authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", false},
	}
}

// Serve has the cluster serve another kind.
func (c *Cluster) Serve(kinds ...Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds = append(c.kinds, kinds...)
}

// Unserve has the cluster serve a kind no more.
func (c *Cluster) Unserve(resource string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds = slices.DeleteFunc(c.kinds, func(k Kind) bool { return k.Resource == resource })
}

func (c *Cluster) kindOf(apiVersion, kind string) (Kind, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kinds {
		if schema.FromAPIVersionAndKind(apiVersion, kind) == (schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}) {
			return k, true
		}
	}
	return Kind{}, false
}

func (c *Cluster) served(group, version, resource string) (Kind, bool) {
	for _, k := range c.kinds {
		if k.Group == group && k.Version == version && k.Resource == resource {
			return k, true
		}
	}
	return Kind{}, false
}

// discovery answers what the cluster serves; nil where it serves no such group.
func (c *Cluster) discovery(path []string) any {
	switch {
	case len(path) == 1 && path[0] == "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case len(path) == 1 && path[0] == "apis":
		return c.groups()
	case len(path) == 2 && path[0] == "api":
		return c.resources("", path[1])
	case len(path) == 2 && path[0] == "apis":
		for _, g := range c.groups().Groups {
			if g.Name == path[1] {
				return g
			}
		}
	case len(path) == 3 && path[0] == "apis":
		return c.resources(path[1], path[2])
	}
	return nil
}

func (c *Cluster) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range c.kinds {
		if k.Group == "" || slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == k.Group }) {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: k.Group + "/" + k.Version, Version: k.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
	}
	return list
}

func (c *Cluster) resources(group, version string) any {
	gv := schema.GroupVersion{Group: group, Version: version}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, k := range c.kinds {
		if k.Group == group && k.Version == version {
			one := metav1.APIResource{Name: k.Resource, Kind: k.Kind, Namespaced: k.Namespaced, Verbs: metav1.Verbs{"get", "list", "watch", "patch"}}
			if k.Kind == "Binding" {
				one.Verbs = metav1.Verbs{"create"}
			}
			list.APIResources = append(list.APIResources, one)
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}
