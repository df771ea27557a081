package drain

import (
	"time"
)

// Pod is what a drain has to know of a pod.
type Pod struct {
	UID        string
	Namespace  string
	Name       string
	Node       string
	Version    uint64 // resourceVersion, to tell what is older
	Labels     map[string]string
	Created    time.Time
	Phase      string // Pending, Running, Succeeded, Failed
	Ready      bool
	Trouble    string    // why a container does not start: CrashLoopBackOff, ImagePullBackOff, …
	NotReady   time.Time // since when it is not Ready; zero where nobody says
	Deleting   bool
	DeleteBy   time.Time // when it should be gone; zero unless Deleting
	Mirror     bool      // of a static pod: the API server cannot delete what it shows
	Controller *Owner
	EmptyDir   bool
	Resources  []string // names of what its containers and init containers ask for
	Claims     []string // names of PersistentVolumeClaims
	Tolerates  bool     // the cordon's taint
	// Unschedulable says that the scheduler has found no node for it.
	Unschedulable bool

	How         string // maint.dev/drain as written, or Cluster API's label
	Order       int
	OrderFault  string // drain-order as written, where it is no number
	Kept        string // the annotation of an autoscaler that says to leave it: key and value
	HasHowLabel bool   // How is Cluster API's label

	TooLarge bool // its labels, claims, resources and controller are not kept, see Bounded
}

// Owner is the controller of a pod.
type Owner struct{ APIVersion, Kind, Name, UID string }

// The values of maint.dev/drain.
const (
	HowSkip          = "skip"
	HowWaitCompleted = "wait-completed"
	HowSurge         = "surge"
)

// String is the pod as people say it: namespace/name.
func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Finished says that nothing runs in it any more.
func (p Pod) Finished() bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }

// OfDaemonSet says that a DaemonSet controls it.
func (p Pod) OfDaemonSet() bool {
	return p.Controller != nil && p.Controller.Kind == "DaemonSet" && p.Controller.APIVersion == "apps/v1"
}

// ownerKey is what a pod that returns has in common with the one that left.
func (p Pod) ownerKey() string {
	if p.Controller == nil {
		return p.Namespace + "/Pod/" + p.Name
	}
	return p.Namespace + "/" + p.Controller.Kind + "/" + p.Controller.UID
}
