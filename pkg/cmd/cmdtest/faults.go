package cmdtest

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// Forbids forbids a verb on a resource, in one namespace or, without a name, in all.
func (o *Cluster) Forbids(verb, resource, namespace string) {
	o.Kube.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		of := a.GetNamespace()
		if get, is := a.(clienttesting.GetAction); is && resource == "namespaces" {
			of = get.GetName()
		}
		if namespace != "" && of != namespace {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(corev1.Resource(resource), "", errors.New("not for you"))
	})
}

// Conflicts makes the first patch of a resource conflict: somebody else writes before it.
func (o *Cluster) Conflicts(resource string, meanwhile func()) {
	first := true
	o.Kube.PrependReactor("patch", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		if !first {
			return false, nil, nil
		}
		first = false
		meanwhile()
		return true, nil, apierrors.NewConflict(corev1.Resource(resource), a.(clienttesting.PatchAction).GetName(), errors.New("it has been modified"))
	})
}

// KeepsNoDryRun has a dry run of a patch of ConfigMaps change nothing, as it is of an API server.
func (o *Cluster) KeepsNoDryRun() {
	o.Kube.PrependReactor("patch", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch, is := a.(clienttesting.PatchActionImpl)
		if !is || len(patch.PatchOptions.DryRun) == 0 {
			return false, nil, nil
		}
		was, none := o.Kube.Tracker().Get(a.GetResource(), a.GetNamespace(), patch.Name)
		if none != nil {
			return false, nil, nil
		}
		kept := was.DeepCopyObject()
		done, got, err := clienttesting.ObjectReaction(o.Kube.Tracker())(a)
		if err != nil {
			return done, got, err
		}
		return done, got, errors.Join(o.Kube.Tracker().Delete(a.GetResource(), a.GetNamespace(), patch.Name), o.Kube.Tracker().Add(kept))
	})
}

// Later does something a second later, on the clock of a synctest bubble. By then every watch is
// open: a client in memory does not replay what happens between a list and its watch.
func Later(do func()) func() {
	return func() {
		time.Sleep(time.Second)
		do()
	}
}

// Stores replaces an object, bypassing all reactors: what somebody else does during a request.
func (o *Cluster) Stores(resource string, object metav1.Object) {
	o.Helper()
	gvr := corev1.SchemeGroupVersion.WithResource(resource)
	if err := o.Kube.Tracker().Update(gvr, object.(runtime.Object), object.GetNamespace()); err != nil {
		o.Error(err)
	}
}

// Creates stores a new object, bypassing all reactors.
func (o *Cluster) Creates(object runtime.Object) {
	o.Helper()
	if err := o.Kube.Tracker().Add(object); err != nil {
		o.Error(err)
	}
}

// Deletes removes an object of namespace shop, bypassing all reactors.
func (o *Cluster) Deletes(resource, name string) {
	o.Helper()
	if err := o.Kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource(resource), "shop", name); err != nil {
		o.Error(err)
	}
}

// Asked counts the requests with a verb for an object of a name.
func (o *Cluster) Asked(verb, resource, name string) int {
	n := 0
	for _, a := range o.Kube.Actions() {
		if !a.Matches(verb, resource) {
			continue
		}
		if named, is := a.(interface{ GetName() string }); is && named.GetName() == name {
			n++
		}
	}
	return n
}
