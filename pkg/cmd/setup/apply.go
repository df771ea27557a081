package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// applier applies single objects.
type applier struct {
	suggest   remedy.Commands
	client    dynamic.Interface
	mapper    meta.RESTMapper
	merger    merger
	mode      mode
	notServed bool // the API server lacks an optional kind
	noStamps  bool // it lacks the kind of the mutating policies
}

// mode is what happens to the objects of an applier.
type mode string

const (
	modeApply  mode = ""       // they are applied
	modeDiff   mode = "diff"   // the API server's dry run is shown
	modeServer mode = "server" // a dry run of the API server
	modeClient mode = "client" // nothing is sent
)

func connect(c *factory.Factory) (*applier, error) {
	if _, err := c.Connect(); err != nil { // notes what the command line says of the cluster
		return nil, err
	}
	config, err := c.ClientConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper, err := c.Config.ToRESTMapper()
	if err != nil {
		return nil, c.Suggest().Explain("ask what kinds the cluster has", err)
	}
	return &applier{suggest: c.Suggest(), client: client, mapper: mapper}, nil
}

// of is the client for a kind; nil if the API server lacks an optional kind.
func (a *applier) of(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := u.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case meta.IsNoMatchError(err) && gvk.Group == "admissionregistration.k8s.io":
		if strings.HasPrefix(gvk.Kind, "Mutating") {
			a.noStamps = true
		} else {
			a.notServed = true
		}
		return nil, nil
	case err != nil:
		return nil, a.suggest.Explain("find the kind "+gvk.Kind, err)
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		return a.client.Resource(mapping.Resource).Namespace(u.GetNamespace()), nil
	}
	return a.client.Resource(mapping.Resource), nil
}

// read reads which of the objects exist.
func (a *applier) read(ctx context.Context, all []*unstructured.Unstructured) (objectsByKey, error) {
	live := objectsByKey{}
	for _, u := range all {
		to, err := a.of(u)
		if err != nil {
			return nil, err
		}
		if to == nil {
			continue
		}
		got, err := to.Get(ctx, u.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, installError(a.suggest, "read "+named(u), err)
		default:
			live[keyOf(u)] = got
		}
	}
	return live, nil
}

// change is the change of an object.
type change struct {
	of            *unstructured.Unstructured
	did           string // empty: nothing to do
	kept          []string
	before, after *unstructured.Unstructured // nil: it does not exist
}

// refused asks the API server which objects it would forbid, before the first is written: half an
// installation is worse than none. Other errors come later: an object may need one before it.
func (a *applier) refused(ctx context.Context, wanted []*unstructured.Unstructured, live objectsByKey) error {
	for _, want := range wanted {
		if there := live[keyOf(want)]; there != nil {
			merged, _, err := a.merger.merge(want, there)
			if err != nil || merged == nil {
				continue
			}
			want = merged
		}
		to, err := a.of(want)
		if err != nil {
			return err
		}
		if to == nil {
			continue
		}
		if _, err := a.apply(ctx, to, want, metav1.DryRunAll); apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

const (
	didCreate    = "created"
	didConfigure = "configured"
	didNothing   = "unchanged"
	didRemove    = "deleted"
)

func (c change) differs() bool { return c.did != "" && c.did != didNothing }

func (a *applier) create(ctx context.Context, want *unstructured.Unstructured, live objectsByKey) (change, error) {
	to, err := a.of(want)
	if err != nil || to == nil {
		return change{of: want}, err
	}
	want, kept, err := a.merger.add(want, live)
	if err != nil {
		return change{}, err
	}
	c := change{of: want, did: didCreate, kept: kept, after: want}
	switch a.mode {
	case modeApply:
		_, err = a.apply(ctx, to, want)
	case modeServer:
		if _, err = a.apply(ctx, to, want, metav1.DryRunAll); apierrors.IsNotFound(err) && namespaceComes(want, live) {
			err = nil // in a dry run, its namespace does not exist either
		}
	}
	return c, err
}

// namespaceComes says whether an object's namespace does not exist yet.
func namespaceComes(u *unstructured.Unstructured, live objectsByKey) bool {
	return u.GetNamespace() != "" && live[objectKey{"Namespace", u.GetNamespace()}] == nil
}

// configure applies what is missing on an existing object. A dry run comes first, so that nothing
// is written where nothing changes.
func (a *applier) configure(ctx context.Context, want, live *unstructured.Unstructured) (change, error) {
	config, kept, err := a.merger.merge(want, live)
	c := change{of: want, did: didNothing, kept: kept, before: live, after: live}
	if err != nil || config == nil {
		return c, err
	}
	if a.mode == modeClient {
		if c.after = config; !within(config.Object, live.Object) {
			c.did = didConfigure
		}
		return c, nil
	}
	to, err := a.of(want)
	if err != nil {
		return c, err
	}
	if c.after, err = a.apply(ctx, to, config, metav1.DryRunAll); err != nil {
		return c, err
	}
	if reflect.DeepEqual(plain(c.before), plain(c.after)) {
		return c, nil
	}
	c.did = didConfigure
	if a.mode == modeApply {
		_, err = a.apply(ctx, to, config)
	}
	return c, err
}

// within says whether an object has everything of a configuration, as far as that is visible
// without the API server, which may write a value in another form.
func within(config, live any) bool {
	switch want := config.(type) {
	case map[string]any:
		have, _ := live.(map[string]any)
		for key, value := range want {
			if !within(value, have[key]) {
				return false
			}
		}
		return true
	case []any:
		have, _ := live.([]any)
		same := len(want) == len(have)
		for i := 0; same && i < len(want); i++ {
			same = within(want[i], have[i])
		}
		return same
	}
	return fmt.Sprint(config) == fmt.Sprint(live) // numbers have several types
}

func (a *applier) remove(ctx context.Context, live *unstructured.Unstructured) (change, error) {
	c := change{of: live, did: didRemove, before: live}
	to, err := a.of(live)
	if err != nil || a.mode == modeDiff || a.mode == modeClient {
		return c, err
	}
	uid := live.GetUID()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if a.mode == modeServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	err = to.Delete(ctx, live.GetName(), options)
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return c, installError(a.suggest, "delete "+named(live), err)
}

// installError is Explain for the objects of an installation.
func installError(of remedy.Commands, doing string, err error) error {
	out := of.Explain(doing, err)
	if !exit.LacksRight(err) {
		return out
	}
	return exit.WithHelp(out, "an installation has objects of the whole cluster: ask an admin of the cluster to run it")
}

// apply is a server-side apply. It is forced: fields of other owners are left out of the
// configuration, except those that are ours to decide.
func (a *applier) apply(ctx context.Context, to dynamic.ResourceInterface, config *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	b, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	force := true
	got, err := to.Patch(ctx, config.GetName(), types.ApplyPatchType, b, metav1.PatchOptions{FieldManager: annotations.ManagerCLI, Force: &force, DryRun: dryRun})
	if err != nil {
		return nil, installError(a.suggest, "apply "+named(config), err)
	}
	return got, nil
}

// plain is an object without fields that the API server maintains.
func plain(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	out := u.DeepCopy()
	unstructured.RemoveNestedField(out.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	return out.Object
}

// unified is the difference in the format of diff -u; empty: none.
func (c change) unified() (string, error) {
	text := func(u *unstructured.Unstructured) (string, error) {
		if u == nil {
			return "", nil
		}
		b, err := yaml.Marshal(plain(u))
		return string(b), err
	}
	before, err := text(c.before)
	if err != nil {
		return "", fmt.Errorf("show %s: %w", named(c.of), err)
	}
	after, err := text(c.after)
	if err != nil {
		return "", fmt.Errorf("show %s: %w", named(c.of), err)
	}
	return view.Difference("cluster/"+named(c.of), before, "install/"+named(c.of), after)
}

// knownRules are the rules of all roles with every part included.
func knownRules(all []*unstructured.Unstructured) (map[objectKey][]rbacv1.PolicyRule, error) {
	out := map[objectKey][]rbacv1.PolicyRule{}
	for _, u := range all {
		if k := u.GetKind(); k != "Role" && k != "ClusterRole" {
			continue
		}
		rules, err := rulesOf(u)
		if err != nil {
			return nil, err
		}
		out[keyOf(u)] = rules
	}
	return out, nil
}
