package plan

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// ExecProperties run a command in a pod that is there already.
type ExecProperties struct {
	Pod       PodSelector `json:"pod"`
	Container string      `json:"container,omitempty"` // default: the pod's first
	Command   []string    `json:"command"`
}

// PodSelector picks one pod of the plan's namespace: by name, or the first by
// name among the ready ones that the labels pick.
type PodSelector struct {
	Name             string                         `json:"name,omitempty"`
	MatchLabels      map[string]string              `json:"matchLabels,omitempty"`
	MatchExpressions []selector.SelectorRequirement `json:"matchExpressions,omitempty"`
}

// BackupProperties make a backup and wait until it can be used.
//
// volume-snapshot takes a VolumeSnapshot of each claim that the selector picks,
// or that the component (a StatefulSet, Deployment or claim of that name)
// mounts. velero makes a Backup of what the selector picks in the plan's
// namespace; without one, of all of it. rds-snapshot takes a snapshot of the database of RDS
// that the component names, in the account of the step's connector.
type BackupProperties struct {
	Method              string                  `json:"method"` // volume-snapshot, velero, rds-snapshot
	Component           string                  `json:"component,omitempty"`
	Selector            *selector.LabelSelector `json:"selector,omitempty"`
	Retain              *document.Duration      `json:"retain,omitempty"`              // older ones of this step go once a newer one is usable; default: they stay
	VolumeSnapshotClass string                  `json:"volumeSnapshotClass,omitempty"` // default: the cluster's
	VeleroNamespace     string                  `json:"veleroNamespace,omitempty"`     // default velero
}

// TypeBackup and its methods.
const (
	TypeBackup           = "backup"
	MethodVolumeSnapshot = "volume-snapshot"
	MethodVelero         = "velero"
	MethodRDSSnapshot    = "rds-snapshot"
)

func checkExec(p any, at document.Reporter) {
	props := p.(*ExecProperties)
	if len(props.Command) == 0 || props.Command[0] == "" {
		at("command", "is empty")
	}
	labelled := len(props.Pod.MatchLabels)+len(props.Pod.MatchExpressions) > 0
	if (props.Pod.Name == "") == !labelled {
		at("pod", "needs exactly one of name and labels (matchLabels, matchExpressions)")
	}
	selector.LabelSelector{MatchLabels: props.Pod.MatchLabels, MatchExpressions: props.Pod.MatchExpressions}.Check("pod", at)
}

func checkBackup(p any, at document.Reporter) {
	props := p.(*BackupProperties)
	methods := []string{MethodVolumeSnapshot, MethodVelero, MethodRDSSnapshot}
	switch {
	case !slices.Contains(methods, props.Method):
		at("method", "must be volume-snapshot, velero or rds-snapshot, is %q", document.Cut(props.Method, 100))
	case props.Method == MethodVolumeSnapshot && (props.Component == "") == (props.Selector == nil):
		at("", "volume-snapshot needs exactly one of component and selector")
	case props.Method == MethodVelero && props.Component != "":
		at("component", "velero takes a selector")
	case props.Method == MethodRDSSnapshot:
		checkDatabase(props, at)
	}
	if props.Selector != nil {
		props.Selector.Check("selector", at)
	}
	for _, only := range []struct{ field, value, method string }{
		{"volumeSnapshotClass", props.VolumeSnapshotClass, MethodVolumeSnapshot}, {"veleroNamespace", props.VeleroNamespace, MethodVelero},
	} {
		if only.value != "" && props.Method != only.method && slices.Contains(methods, props.Method) {
			at(only.field, "%s", fmt.Sprintf("goes with method %s", only.method))
		}
	}
	if props.Retain != nil && props.Retain.Duration <= 0 {
		at("retain", "must be longer than 0s, is %s", props.Retain)
	}
}

// checkDatabase looks at what a snapshot of RDS is of.
func checkDatabase(props *BackupProperties, at document.Reporter) {
	name := regexp.MustCompile(`^(arn:aws[a-z-]*:rds:[a-z0-9-]+:[0-9]{12}:(db|cluster):)?[A-Za-z][A-Za-z0-9-]{0,62}$`)
	switch {
	case props.Component == "":
		at("component", "is missing: the name or ARN of a database instance or of an Aurora cluster")
	case !expr.IsTemplate(props.Component) && !name.MatchString(props.Component):
		at("component", "%q cannot name a database of RDS: write its name or its ARN", document.Cut(props.Component, 200))
	}
	if props.Selector != nil {
		at("selector", "is for resources in the cluster; rds-snapshot takes a component")
	}
}

// HoldProperties hold a HibernatePlan of the plan's namespace asleep or awake while the run
// lives.
type HoldProperties struct {
	Plan string `json:"plan"` // its name
}

func checkHold(props any, at document.Reporter) {
	p := props.(*HoldProperties)
	if p.Plan != "" && !document.DNSLabel(p.Plan) && !expr.IsTemplate(p.Plan) {
		at("plan", "%q cannot name a HibernatePlan", document.Cut(p.Plan, 100))
	}
}
