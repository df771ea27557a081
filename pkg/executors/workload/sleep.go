package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// Sleeps puts the workloads of a cluster to sleep: it scales what has a scale to its floor,
// suspends CronJobs, pauses KEDA's ScaledObjects, and gives DaemonSets a node selector that matches
// no node. A HorizontalPodAutoscaler does nothing by itself while its target has no replicas.
type Sleeps struct{}

// pageOfWorkloads is the page size of lists: ten thousand workloads are never in memory at once.
const pageOfWorkloads = 500

// before is the restore data of a workload: one of its fields.
type before struct {
	Replicas *int64 `json:"replicas,omitempty"`
	Suspend  *bool  `json:"suspend,omitempty"`
	Paused   *field `json:"paused,omitempty"`       // of a ScaledObject
	Selector *field `json:"nodeSelector,omitempty"` // of a DaemonSet
}

// field is a text that may be missing.
type field struct {
	Value *string `json:"value"`
}

// Validate looks up the kinds, and asks the API server for one object of each.
func (Sleeps) Validate(ctx context.Context, call executors.SleepCall) error {
	s, err := newSleep(call)
	if err != nil {
		return err
	}
	namespaces, err := s.namespaces(ctx)
	if err != nil {
		return err
	}
	if len(namespaces) == 0 {
		return errors.New("parameters.namespaceSelector selects no namespace")
	}
	for _, k := range s.kinds {
		if _, err := s.call.Clients.Dynamic.Resource(k.resource).Namespace(namespaces[0]).List(ctx, metav1.ListOptions{Limit: 1, LabelSelector: s.selector}); err != nil && !k.mayLack(err) {
			return fmt.Errorf("list %s in namespace %s: %w", k.resource.GroupResource(), namespaces[0], err)
		}
	}
	return nil
}

// Observe reports the selected workloads and the recorded ones.
func (Sleeps) Observe(ctx context.Context, call executors.SleepCall) ([]hibernate.Observation, error) {
	s, err := newSleep(call)
	if err != nil {
		return nil, err
	}
	var namespaces []string
	if call.Operation != hibernate.Wake { // on waking, the records say what sleeps
		if namespaces, err = s.namespaces(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.floors(ctx, namespaces); err != nil {
		return nil, err
	}
	seen := &sightings{of: map[string]bool{}}
	for _, k := range s.kinds {
		selector := s.selector
		if k.form == byPause { // it goes with the workload that it scales, whatever its own labels
			selector = ""
		}
		for _, ns := range namespaces {
			err := s.list(ctx, k, ns, selector, func(u *unstructured.Unstructured) error { return s.see(ctx, k, u, seen) })
			switch {
			case k.mayLack(err):
				seen.add(hibernate.Observation{ID: k.resource.GroupResource().String() + "/" + ns, LeftOut: "they are not paused: " + err.Error()})
			case err != nil:
				return nil, err
			}
		}
	}
	if err := s.rest(ctx, seen); err != nil {
		return nil, err
	}
	return seen.list, nil
}

// sightings are observations without duplicates.
type sightings struct {
	list []hibernate.Observation
	of   map[string]bool
}

func (s *sightings) add(o hibernate.Observation) {
	s.of[o.ID] = true
	s.list = append(s.list, o)
}

// sleep is the state of one call.
type sleep struct {
	call     executors.SleepCall
	params   *hibernate.WorkloadParameters
	kinds    []sleepKind // in the order in which they are read: autoscalers come last
	selector string
	floor    int64
	scaled   map[string]string                // with a floor: the autoscaler of a workload, by its id
	known    map[[2]string]hibernate.Resource // records by id and uid; nil until they are needed
	unknown  map[string]error                 // on waking: why a kind of an API group could not be looked up
	kept     int                              // what was noted from lists
}

func newSleep(call executors.SleepCall) (*sleep, error) {
	params, ok := call.Params.(*hibernate.WorkloadParameters)
	if !ok {
		return nil, fmt.Errorf("the parameters are %T", call.Params)
	}
	s := &sleep{call: call, params: params}
	if params.Floor != nil {
		s.floor = int64(*params.Floor)
	}
	var err error
	if s.selector, err = selectorOf(params.Selector); err != nil {
		return nil, err
	}
	for _, k := range params.Of() {
		found, err := s.served(k)
		if meta.IsNoMatchError(err) && (k == hibernate.ScaledObject() && !params.Names(k) || call.Operation == hibernate.Wake) {
			continue // not installed, or no longer: it keeps nothing else asleep
		}
		if err != nil && call.Operation == hibernate.Wake { // it keeps nothing else asleep
			s.notLookedUp(k, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		found.unasked = len(params.Kinds) > 0 && !params.Names(k)
		s.kinds = append(s.kinds, found)
	}
	slices.SortStableFunc(s.kinds, func(a, b sleepKind) int { return btoi(a.form == byPause) - btoi(b.form == byPause) })
	return s, nil
}

func (s *sleep) notLookedUp(k hibernate.Kind, why error) {
	if s.unknown == nil {
		s.unknown = map[string]error{}
	}
	gv, _ := schema.ParseGroupVersion(k.APIVersion) // the plan was validated
	s.unknown[gv.Group] = why
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// served is a kind as the cluster serves it.
func (s *sleep) served(k hibernate.Kind) (sleepKind, error) {
	mapping, err := executors.Mapping(s.call.Clients.Mapper, k.APIVersion, k.Kind)
	if err != nil {
		return sleepKind{}, fmt.Errorf("the cluster does not serve %s of %s: %w", k.Kind, k.APIVersion, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return sleepKind{}, fmt.Errorf("%s of %s belongs to no namespace", k.Kind, k.APIVersion)
	}
	return sleepKind{resource: mapping.Resource, kind: k.Kind, form: formOf(mapping.Resource.GroupResource())}, nil
}

func selectorOf(l *selector.LabelSelector) (string, error) {
	if l == nil {
		return "", nil
	}
	return executors.Selector(*l)
}

// namespaces are those whose workloads sleep.
func (s *sleep) namespaces(ctx context.Context) ([]string, error) {
	switch {
	case s.params.NamespaceSelector != nil:
		text, err := executors.Selector(*s.params.NamespaceSelector)
		if err != nil {
			return nil, err
		}
		var out []string
		err = kube.EachOf(ctx, s.call.Clients.Kube.CoreV1().Namespaces().List, text, func(ns *corev1.Namespace) error {
			if ns.DeletionTimestamp == nil {
				out = append(out, ns.Name)
				return s.keep()
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		return out, nil
	case len(s.params.Namespaces) > 0:
		return s.params.Namespaces, nil
	}
	return []string{s.call.Plan.Namespace}, nil
}

// list calls a function for the objects of a kind, page by page.
func (s *sleep) list(ctx context.Context, k sleepKind, namespace, selector string, see func(*unstructured.Unstructured) error) error {
	from := s.call.Clients.Dynamic.Resource(k.resource).Namespace(namespace)
	for next, first := "", true; first || next != ""; first = false {
		page, err := from.List(ctx, metav1.ListOptions{Limit: pageOfWorkloads, Continue: next, LabelSelector: selector})
		if err != nil {
			return fmt.Errorf("list %s in namespace %s: %w", k.resource.GroupResource(), namespace, err)
		}
		for i := range page.Items {
			if err := see(&page.Items[i]); err != nil {
				return err
			}
		}
		next = page.GetContinue()
	}
	return nil
}

// see adds the observation of one workload. What another controller makes and scales is left to
// that controller.
func (s *sleep) see(ctx context.Context, k sleepKind, u *unstructured.Unstructured, seen *sightings) error {
	id := idOf(k.resource.GroupResource(), u.GetNamespace(), u.GetName())
	if seen.of[id] {
		return nil
	}
	if _, known := s.recorded(id, string(u.GetUID())); !known && (metav1.GetControllerOf(u) != nil || k.form == byPause && !seen.of[s.targetOf(u)]) {
		return nil
	}
	o, err := s.observed(ctx, k, u)
	if err != nil {
		return err
	}
	seen.add(o)
	return s.keep()
}

// keep counts what is noted from a list, and refuses more of another cluster than is looked at.
func (s *sleep) keep() error {
	s.kept++
	return s.call.Clients.TooMany(s.kept, "workloads, with their namespaces and autoscalers: make several targets of them")
}

// recorded is the record of a workload; false: there is none.
func (s *sleep) recorded(id, uid string) (hibernate.Resource, bool) {
	if s.known == nil {
		s.known = make(map[[2]string]hibernate.Resource, len(s.call.Recorded))
		for _, r := range s.call.Recorded {
			s.known[[2]string{r.ID, r.UID}] = r
		}
	}
	r, known := s.known[[2]string{id, uid}]
	return r, known
}

// belowFloor says whether somebody scaled a workload down while it slept at its floor.
func (s *sleep) belowFloor(o hibernate.Observation, replicas int64) bool {
	r, known := s.recorded(o.ID, o.UID)
	return known && replicas < s.floor && r.AsleepAt != nil && r.WokenAt == nil
}

// staysAsleep says whether somebody edited the restore data of a workload so that it does not wake.
// It then counts as restored.
func (s *sleep) staysAsleep(o hibernate.Observation) bool {
	want, known := s.recorded(o.ID, o.UID)
	var a, b before
	return known && s.call.Operation == hibernate.Wake && o.Asleep && json.Unmarshal(want.Before, &a) == nil && json.Unmarshal(o.Before, &b) == nil && reflect.DeepEqual(a, b)
}

// idOf names a workload: deployments.apps/shop/web.
func idOf(of schema.GroupResource, namespace, name string) string {
	return of.String() + "/" + namespace + "/" + name
}

// rest observes what was recorded and is no longer selected. On waking, a kind that cannot be read
// keeps nothing else asleep.
func (s *sleep) rest(ctx context.Context, seen *sightings) error {
	missing := map[string][]hibernate.Resource{} // by kind and namespace
	for _, r := range s.call.Recorded {
		if !seen.of[r.ID] {
			place, _, _ := cutLast(r.ID)
			missing[place] = append(missing[place], r)
		}
	}
	for place, resources := range missing {
		of, namespace, ok := cutLast(place)
		if !ok || of == "" {
			return noWorkload(resources[0].ID)
		}
		err := s.lookAt(ctx, schema.ParseGroupResource(of), namespace, resources, seen)
		switch {
		case err != nil && s.call.Operation != hibernate.Wake:
			return err
		case err != nil:
			seen.unseen(resources, err)
		}
	}
	return nil
}

// unseen adds those of which nothing is known now.
func (s *sightings) unseen(resources []hibernate.Resource, why error) {
	for _, r := range resources {
		if !s.of[r.ID] {
			s.add(hibernate.Observation{ID: r.ID, UID: r.UID, Unseen: why})
		}
	}
}

// lookAt observes the recorded workloads of a kind in a namespace.
func (s *sleep) lookAt(ctx context.Context, of schema.GroupResource, namespace string, resources []hibernate.Resource, seen *sightings) error {
	k, err := s.kindOf(of)
	if why := s.unknown[of.Group]; err != nil && why != nil { // whether the kind is gone is not known
		return why
	}
	if meta.IsNoMatchError(err) { // the kind is gone, and all of it
		for _, r := range resources {
			seen.add(hibernate.Observation{ID: r.ID, UID: r.UID, Gone: true})
		}
		return nil
	}
	if err != nil {
		return err
	}
	return s.look(ctx, k, namespace, resources, seen)
}

func noWorkload(id string) error {
	if id == "" {
		return errors.New("the restore data has a resource without an id")
	}
	return fmt.Errorf("the restore data names %q, which is no workload", id)
}

func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndex(text, "/")
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// fewToList is from how many workloads of one namespace on all are listed instead of read one by
// one (a guess: a page of a list costs as much as a few single reads).
const fewToList = 5

// look looks at recorded workloads of a kind and a namespace.
func (s *sleep) look(ctx context.Context, k sleepKind, namespace string, resources []hibernate.Resource, seen *sightings) error {
	wanted := map[string]hibernate.Resource{}
	for _, r := range resources {
		wanted[r.ID] = r
	}
	see := func(u *unstructured.Unstructured) error {
		id := idOf(k.resource.GroupResource(), namespace, u.GetName())
		if _, ours := wanted[id]; !ours {
			return nil
		}
		o, err := s.observed(ctx, k, u)
		switch {
		case err != nil && s.call.Operation != hibernate.Wake:
			return err
		case err != nil:
			seen.unseen([]hibernate.Resource{wanted[id]}, err)
		default:
			seen.add(o)
		}
		return nil
	}
	var err error
	if len(resources) > fewToList {
		err = s.list(ctx, k, namespace, "", see)
	} else {
		err = s.get(ctx, k, namespace, resources, see, seen)
	}
	if err != nil {
		return err
	}
	for id, r := range wanted {
		if !seen.of[id] {
			seen.add(hibernate.Observation{ID: id, UID: r.UID, Gone: true})
		}
	}
	return nil
}

// get hands on those that are there, each asked for by its name. On waking, one that the API server
// refuses is unseen, with its own cause, and the next is asked for.
func (s *sleep) get(ctx context.Context, k sleepKind, namespace string, resources []hibernate.Resource, see func(*unstructured.Unstructured) error, seen *sightings) error {
	for _, r := range resources {
		_, name, _ := cutLast(r.ID)
		u, err := s.call.Clients.Dynamic.Resource(k.resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil && s.call.Operation == hibernate.Wake && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown: // it answered
			seen.unseen([]hibernate.Resource{r}, fmt.Errorf("get %s in namespace %s: %w", r.ID, namespace, err))
			continue
		case err != nil:
			return fmt.Errorf("get %s in namespace %s: %w", r.ID, namespace, err)
		}
		if err := see(u); err != nil {
			return err
		}
	}
	return nil
}

// kindOf is a kind by its name in restore data.
func (s *sleep) kindOf(of schema.GroupResource) (sleepKind, error) {
	for _, k := range s.kinds {
		if k.resource.GroupResource() == of {
			return k, nil
		}
	}
	resource, err := s.call.Clients.Mapper.ResourceFor(of.WithVersion(""))
	if err != nil {
		return sleepKind{}, fmt.Errorf("the cluster does not serve %s: %w", of, err)
	}
	return sleepKind{resource: resource, form: formOf(of)}, nil
}

// observed says how a workload is.
func (s *sleep) observed(ctx context.Context, k sleepKind, u *unstructured.Unstructured) (hibernate.Observation, error) {
	o, err := s.formed(ctx, k, u)
	if s.staysAsleep(o) {
		o.Asleep, o.Awake, o.Ready = false, true, true
	}
	return o, err
}

// formed says how a workload of one form is.
func (s *sleep) formed(ctx context.Context, k sleepKind, u *unstructured.Unstructured) (hibernate.Observation, error) {
	o := hibernate.Observation{
		ID: idOf(k.resource.GroupResource(), u.GetNamespace(), u.GetName()), UID: string(u.GetUID()), Version: u.GetResourceVersion(),
		Gone: u.GetDeletionTimestamp() != nil, Kind: u.GetKind(),
	}
	switch k.form {
	case bySuspend:
		return suspension(u, o)
	case byPause:
		return s.pausing(u, o), nil
	case byNodeSelector:
		return banishment(u, o), nil
	}
	replicas, is, ready, err := s.replicas(ctx, k, u)
	if err != nil {
		return o, err
	}
	o.Awake = replicas > s.floor || s.belowFloor(o, replicas)
	o.Asleep, o.Ready, o.Before = !o.Awake && is <= s.floor, ready >= replicas, must(before{Replicas: &replicas})
	o.RevivedBy, o.LeftOut = api.GitOpsOwner(u, "replicas"), s.scaled[o.ID]
	if own := s.ownAgent(u); own != "" {
		o.LeftOut = own
	}
	if o.Awake {
		o.Units = units(u, max(0, replicas-s.floor))
	}
	return o, nil
}

// replicas are the numbers of replicas that a workload should have, has, and has ready.
func (s *sleep) replicas(ctx context.Context, k sleepKind, u *unstructured.Unstructured) (want, is, ready int64, err error) {
	status := func(field string) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, "status", field)
		return n
	}
	if k.form == byReplicas {
		want, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
		if !found {
			want = 1
		}
		if seen := status("observedGeneration"); seen < u.GetGeneration() { // its status is older than its spec
			return want, max(1, s.floor+1), -1, err
		}
		return want, status("replicas"), status("readyReplicas"), err
	}
	scale, err := s.call.Clients.Dynamic.Resource(k.resource).Namespace(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{}, "scale")
	if err != nil {
		return 0, 0, 0, fmt.Errorf("get the scale of %s %s/%s: %w", k.resource.GroupResource(), u.GetNamespace(), u.GetName(), err)
	}
	want, _, err = unstructured.NestedInt64(scale.Object, "spec", "replicas")
	is, _, _ = unstructured.NestedInt64(scale.Object, "status", "replicas")
	return want, is, is, err
}

func must(b before) json.RawMessage {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // numbers and texts always marshal
	}
	return text
}

// Shutdown puts workloads to sleep, one kind after the other.
func (Sleeps) Shutdown(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return change(ctx, call, due, func(s *sleep, d hibernate.Due) (*before, error) {
		if !d.Seen.Awake {
			return nil, nil
		}
		was, err := recorded(d)
		switch {
		case err != nil:
			return nil, err
		case was.Suspend != nil:
			return &before{Suspend: new(true)}, nil
		case was.Paused != nil:
			return &before{Paused: &field{new(strconv.FormatInt(s.floor, 10))}}, nil
		case was.Selector != nil:
			return &before{Selector: &field{new(s.call.Plan.Name)}}, nil
		}
		return &before{Replicas: &s.floor}, nil
	})
}

// recorded is the restore data of a workload. If somebody edited the value away, that is no reason
// to set anything.
func recorded(d hibernate.Due) (*before, error) {
	var was before
	switch err := json.Unmarshal(d.Before, &was); {
	case err != nil:
		return nil, fmt.Errorf("the restore data of %s: %w", d.ID, err)
	case was == before{}:
		return nil, fmt.Errorf("the restore data of %s does not say what it was", d.ID)
	}
	return &was, nil
}

// Wake restores workloads, one kind after the other, in reverse order. After a failure, or where
// something cannot be read, kinds no longer wait for each other: a workload that does not become
// ready keeps no other asleep.
func (Sleeps) Wake(ctx context.Context, call executors.SleepCall, due []hibernate.Due) []executors.SleepResult {
	return change(ctx, call, due, func(_ *sleep, d hibernate.Due) (*before, error) {
		if d.Seen.Awake { // it only has to become ready
			return nil, nil
		}
		return recorded(d)
	})
}

// Turn is the kind that is put to sleep now.
func (Sleeps) Turn(call executors.SleepCall, due []hibernate.Due) []hibernate.Due {
	s, err := newSleep(call)
	if err != nil {
		return nil // nothing is requested
	}
	turn := s.turn(due)
	return slices.DeleteFunc(slices.Clone(due), func(d hibernate.Due) bool {
		of, _, _, _ := parts(d.ID)
		return of != turn
	})
}

// change writes the patch of to for each workload of the kinds whose turn it is; nil: nothing.
func change(ctx context.Context, call executors.SleepCall, due []hibernate.Due, to func(*sleep, hibernate.Due) (*before, error)) []executors.SleepResult {
	s, err := newSleep(call)
	if err != nil {
		return executors.NotBegun(err)
	}
	seen, out := split(due)
	turn, all := s.turn(seen), call.Operation == hibernate.Wake && call.Failures+len(out) > 0
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	var mu sync.Mutex
	result := func(r executors.SleepResult) {
		mu.Lock()
		defer mu.Unlock()
		out = append(out, r)
	}
	for _, d := range seen {
		of, namespace, name, ok := parts(d.ID)
		if !ok || ctx.Err() != nil {
			continue
		}
		if of != turn && !all {
			result(executors.SleepResult{ID: d.ID, Untouched: true})
			continue
		}
		want, err := to(s, d)
		if err != nil {
			result(executors.SleepResult{ID: d.ID, Err: err})
		}
		if want == nil {
			continue
		}
		group.Go(func() error {
			k, err := s.kindOf(schema.ParseGroupResource(of))
			if err == nil {
				err = s.write(ctx, k, namespace, name, d, *want)
			}
			if ctx.Err() != nil { // the next pass goes on
				return nil
			}
			result(executors.SleepResult{ID: d.ID, Err: err, Untouched: executors.NothingDone(err)})
			return nil
		})
	}
	_ = group.Wait() // each result has its own error
	return out
}

// split are the workloads of this turn, and the results of all others.
func split(due []hibernate.Due) (seen []hibernate.Due, unseen []executors.SleepResult) {
	for _, d := range due {
		if d.Seen.Unseen != nil {
			unseen = append(unseen, executors.SleepResult{ID: d.ID, Err: d.Seen.Unseen})
			continue
		}
		seen = append(seen, d)
	}
	return seen, unseen
}

// writesAtOnce is how many workloads are changed concurrently (a guess: the API server has others
// to serve).
const writesAtOnce = 4

func parts(id string) (of, namespace, name string, ok bool) {
	all := strings.Split(id, "/")
	if len(all) != 3 {
		return "", "", "", false
	}
	return all[0], all[1], all[2], true
}

// turn is the kind whose workloads are written now: the first that is due, on waking the last.
// Autoscalers come before the workloads both times: a paused autoscaler would undo the waking.
func (s *sleep) turn(due []hibernate.Due) string {
	there := map[string]bool{}
	for _, d := range due {
		if of, _, _, ok := parts(d.ID); ok {
			there[of] = true
		}
	}
	kinds := slices.Clone(s.kinds)
	if s.call.Operation == hibernate.Wake {
		slices.Reverse(kinds)
	}
	slices.SortStableFunc(kinds, func(a, b sleepKind) int { return btoi(b.form == byPause) - btoi(a.form == byPause) })
	for _, k := range kinds {
		if of := k.resource.GroupResource().String(); there[of] {
			return of
		}
	}
	for of := range there { // a kind that the plan no longer names
		return of
	}
	return ""
}

// write changes one workload, under the version that was seen: a write of somebody else in between
// is looked at first.
func (s *sleep) write(ctx context.Context, k sleepKind, namespace, name string, d hibernate.Due, to before) error {
	body, subresource := patchOf(d, to)
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%s: %w", d.ID, err)
	}
	options := metav1.PatchOptions{FieldManager: s.call.Plan.Manager}
	if s.call.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	api := s.call.Clients.Dynamic.Resource(k.resource).Namespace(namespace)
	_, err = api.Patch(ctx, name, types.MergePatchType, text, options, subresource...)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // the next look decides
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.ID, err)
	}
	return nil
}
