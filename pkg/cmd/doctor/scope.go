package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/rights"
)

// place is what a right is on: a resource of a namespace, or of the cluster.
type place struct{ namespace, group, resource string }

// kind is the resource as kubectl takes it: deployments.apps/scale.
func (p place) kind() string {
	resource, subresource, _ := strings.Cut(p.resource, "/")
	return resource + view.Prefix(".", p.group) + view.Prefix("/", subresource)
}

// servedKinds are the kinds that were looked up; nil: the API server does not have it.
type servedKinds map[plan.ObjectRef]*metav1.APIResource

// placeOf is what a need is on. usual: rbac, which asks no cluster, takes it for the same.
func (s servedKinds) placeOf(k *factory.Cluster, n rights.Need) (at place, usual bool, err error) {
	ref := plan.ObjectRef{APIVersion: n.APIVersion, Kind: n.Kind}
	kind, known := s[ref]
	if !known {
		kind, err = k.Served(ref)
		s[ref] = kind
	}
	at.namespace = n.Namespace
	at.group, at.resource = source.ResourceOf(n)
	if kind == nil {
		return at, true, err
	}
	taken := at
	at.resource = kind.Name + view.Prefix("/", n.Subresource)
	if !kind.Namespaced {
		at.namespace = ""
	}
	return at, at == taken, nil
}

// grant is what is to be granted on one resource, or on one object of it.
type grant struct {
	place
	name        string
	verbs, whys []string
}

type grants []*grant

// with has a right more, which somebody needs. What is to be granted on all objects is granted on each.
func (g grants) with(at place, name, verb, why string) grants {
	i := slices.IndexFunc(g, func(one *grant) bool {
		return one.place == at && (one.name == name || one.name == "" && slices.Contains(one.verbs, verb))
	})
	if i < 0 {
		i, g = len(g), append(g, &grant{place: at, name: name})
	}
	one := g[i]
	if !slices.Contains(one.verbs, verb) {
		one.verbs = append(one.verbs, verb)
	}
	if !slices.Contains(one.whys, why) {
		one.whys = append(one.whys, why)
	}
	return g
}

// accountOf is the ServiceAccount that a user name stands for.
func accountOf(user string) (namespace, name string) {
	namespace, name, _ = strings.Cut(strings.TrimPrefix(user, "system:serviceaccount:"), ":")
	return namespace, name
}

// unusual says which rights are missing that the Roles of rbac do not grant.
func (o *options) unusual(user string, missing grants) {
	of, account := accountOf(user)
	for _, g := range missing {
		verbs := strings.Join(g.verbs, ",")
		command := o.Suggest().GrantIn(g.namespace, of, account, verbs, g.kind(), g.name)
		if g.namespace == "" {
			command = o.Suggest().GrantEverywhere(of, account, verbs, g.kind(), g.name)
		}
		o.amiss(fmt.Sprintf("%s may not %s %s%s%s (for %s), which the Role that rbac prints does not grant", user, strings.Join(g.verbs, ", "), g.kind(), view.Prefix(" ", g.name), view.In(g.namespace), strings.Join(g.whys, ", ")), "grant it: "+command)
	}
}
