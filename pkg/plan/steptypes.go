package plan

import (
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// IfAlways is the condition of a step that runs whatever failed before it.
const IfAlways = "always"

// StepType is one row of the table of steps: what it is called, what its
// properties are, and what has to be true of them beyond their types.
type StepType struct {
	Name string
	// Required are the properties that must be given.
	Required []string
	// Structure says that the type only holds steps: nothing is executed.
	Structure bool
	// ClusterScope is the cluster that steps of the type may work on.
	ClusterScope ClusterScope
	// New is an empty value of the type's properties, a pointer to a struct.
	New func() any
	// Check reports what the types cannot say. at puts the step's path before it.
	Check func(properties any, at func(path, format string, args ...any))
}

// StepTypes are the step types that this version runs, in the order of the
// documentation. A type that is not here makes a plan invalid.
func StepTypes() []StepType {
	return []StepType{
		{Name: "label", ClusterScope: AnyCluster, Required: []string{"operation", "labels"}, New: func() any { return &LabelProperties{} }, Check: checkLabel},
		{Name: "annotate", ClusterScope: AnyCluster, Required: []string{"operation", "annotations"}, New: func() any { return &AnnotateProperties{} }, Check: checkAnnotate},
		{Name: "patch-object", ClusterScope: AnyCluster, Required: []string{"resource", "patch"}, New: func() any { return &PatchProperties{} }, Check: checkPatch},
		{Name: TypeScale, ClusterScope: AnyCluster, Required: []string{"resource", "replicas"}, New: func() any { return &ScaleProperties{} }, Check: checkScale},
		{Name: TypeHoldOwners, ClusterScope: OwnCluster, Required: []string{"restoreAfter"}, New: func() any { return &HoldOwnersProperties{} }, Check: checkHoldOwners},
		{Name: "suspend", New: func() any { return &SuspendProperties{} }, Check: checkSuspend},
		{Name: "wait", ClusterScope: AnyCluster, Required: []string{"resource"}, New: func() any { return &WaitProperties{} }, Check: checkWait},
		{Name: "webhook", Required: []string{"url"}, New: func() any { return &WebhookProperties{} }, Check: checkWebhook},
		{Name: "job", ClusterScope: AnyCluster, New: func() any { return &JobProperties{} }, Check: checkJob},
		{Name: TypeApply, ClusterScope: AnyCluster, Required: []string{"object"}, New: func() any { return &ApplyProperties{} }, Check: checkApply},
		{Name: TypeDelete, ClusterScope: AnyCluster, Required: []string{"resource"}, New: func() any { return &DeleteProperties{} }, Check: checkDelete},
		{Name: "restart", ClusterScope: AnyCluster, Required: []string{"resource"}, New: func() any { return &RestartProperties{} }, Check: checkRestart},
		{Name: "health-check", ClusterScope: AnyCluster, New: func() any { return &HealthProperties{} }, Check: checkHealth},
		{Name: "prometheus", Required: []string{"url", "query", "condition"}, New: func() any { return &PrometheusProperties{} }, Check: checkPrometheus},
		{Name: "notification", Required: []string{"message"}, New: func() any { return &NotificationProperties{} }, Check: checkNotification},
		{Name: "silence", Required: []string{"alertmanager", "matchers"}, New: func() any { return &SilenceProperties{} }, Check: checkSilence},
		{Name: "exec", ClusterScope: OwnCluster, Required: []string{"pod", "command"}, New: func() any { return &ExecProperties{} }, Check: checkExec},
		{Name: TypeBackup, ClusterScope: AnyCluster, Required: []string{"method"}, New: func() any { return &BackupProperties{} }, Check: checkBackup},
		{Name: TypeFunction, ClusterScope: OwnCluster, New: func() any { return &FunctionProperties{} }, Check: checkFunction},
		{Name: TypePipeline, ClusterScope: OwnCluster, Required: []string{"functions"}, New: func() any { return &PipelineProperties{} }, Check: checkPipeline},
		{Name: TypeApproval, New: func() any { return &ApprovalProperties{} }, Check: checkApproval},
		{Name: TypeGroup, ClusterScope: AnyCluster, Required: []string{"steps"}, New: func() any { return &GroupProperties{} }, Check: checkGroup, Structure: true},
		{Name: TypeForEach, ClusterScope: AnyCluster, Required: []string{"apiVersion", "kind", "steps"}, New: func() any { return &ForEachProperties{} }, Check: checkForEach},
		{Name: TypeCordon, ClusterScope: AnyCluster, New: func() any { return &CordonProperties{} }, Check: checkCordon},
		{Name: TypeDrain, ClusterScope: AnyCluster, New: func() any { return &DrainProperties{} }, Check: checkDrain},
		{Name: TypeUncordon, ClusterScope: AnyCluster, New: func() any { return &CordonProperties{} }, Check: checkCordon},
		{Name: TypeHibernate, Required: []string{"plan"}, New: func() any { return &HoldProperties{} }, Check: checkHold},
		{Name: TypeWake, Required: []string{"plan"}, New: func() any { return &HoldProperties{} }, Check: checkHold},
		{Name: TypeForEachNode, ClusterScope: OwnCluster, Required: []string{"steps"}, New: func() any { return &ForEachNodeProperties{} }, Check: checkForEachNode},
	}
}

// StepTypeNamed is the row of the table with that name.
func StepTypeNamed(name string) (StepType, bool) {
	types := StepTypes()
	i := slices.IndexFunc(types, func(t StepType) bool { return t.Name == name })
	if i < 0 {
		return StepType{}, false
	}
	return types[i], true
}

// ResourceRef names the object a step works on. An empty namespace is the plan's.
type ResourceRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace,omitempty"`
}

// String is the reference as people say it: Deployment/orders.
func (r ResourceRef) String() string { return r.Kind + "/" + r.Name }

// LabelProperties add or remove labels of an object; Labels is a map to add or
// a list of keys to remove.
type LabelProperties struct {
	Operation    string       `json:"operation"`
	Labels       any          `json:"labels"`
	Object       *ResourceRef `json:"object,omitempty"`
	RestoreAfter bool         `json:"restoreAfter,omitempty"`
}

// HoldOwnersProperties name the object whose owner in Git is suspended: the plan's target
// where none is named. RestoreAfter has to be true.
type HoldOwnersProperties struct {
	Object       *ResourceRef `json:"object,omitempty"`
	RestoreAfter bool         `json:"restoreAfter"`
}

// AnnotateProperties are LabelProperties for annotations.
type AnnotateProperties struct {
	Operation    string       `json:"operation"`
	Annotations  any          `json:"annotations"`
	Object       *ResourceRef `json:"object,omitempty"`
	RestoreAfter bool         `json:"restoreAfter,omitempty"`
}

// PatchProperties change an object that exists.
type PatchProperties struct {
	Resource     ResourceRef `json:"resource"`
	PatchType    string      `json:"patchType,omitempty"` // strategic (default), merge, json
	Patch        any         `json:"patch"`
	RestoreAfter bool        `json:"restoreAfter,omitempty"`
}

// ScaleProperties set the replicas of anything with a scale subresource.
type ScaleProperties struct {
	Resource     ResourceRef `json:"resource"`
	Replicas     *int64      `json:"replicas"`
	RestoreAfter bool        `json:"restoreAfter,omitempty"`
}

// SuspendProperties hold a run for a while, or until somebody resumes it.
type SuspendProperties struct {
	Duration *document.Duration `json:"duration,omitempty"`
}

// WaitProperties hold a run until an object's condition is True or a CEL
// expression over `object` is.
type WaitProperties struct {
	Resource  ResourceRef `json:"resource"`            // the object that is waited for; in a for-each-node default: the node
	Condition string      `json:"condition,omitempty"` // type of a condition in its status that has to be True; this or until
	Until     string      `json:"until,omitempty"`     // CEL over object that has to be true; this or condition
}

// WebhookProperties are one HTTP request that somebody answers.
type WebhookProperties struct {
	URL     string                 `json:"url"`
	Method  string                 `json:"method,omitempty"` // default POST
	Headers map[string]HeaderValue `json:"headers,omitempty"`
	Body    any                    `json:"body,omitempty"`
	Expect  *WebhookExpect         `json:"expect,omitempty"`
	Timeout *document.Duration     `json:"timeout,omitempty"` // of one delivery, default 30s
}

// HeaderValue is the value of a header, or where in a Secret of the plan's
// namespace it stands.
type HeaderValue struct {
	Value        string                 `json:"value,omitempty"`
	SecretKeyRef *document.SecretKeyRef `json:"secretKeyRef,omitempty"`
}

// UnmarshalText reads the short form, a string.
func (h *HeaderValue) UnmarshalText(b []byte) error {
	h.Value = string(b)
	return nil
}

// WebhookExpect says which answer is success: statuses (default any 2xx), and
// what the JSON body must contain.
type WebhookExpect struct {
	Status []int          `json:"status,omitempty"`
	JSON   map[string]any `json:"json,omitempty"`
}

// JobProperties run a Job and wait for it: a whole template (a Job's spec), or
// an image and a command.
type JobProperties struct {
	Template map[string]any `json:"template,omitempty"`
	Image    string         `json:"image,omitempty"`
	Command  []string       `json:"command,omitempty"`
	Args     []string       `json:"args,omitempty"`
}
