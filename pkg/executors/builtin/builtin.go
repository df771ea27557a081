// Package builtin puts together the executors that this version has. It is the
// one place that imports every world; programs import it, worlds do not.
package builtin

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/asg"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/ec2"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/eks"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/rds"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/backup"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/flow"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/http"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/karpenter"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/node"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/notify"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/object"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/workload"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Executors are the executors of this version, one for each type that package
// plan accepts.
func Executors() executors.Set {
	answers := function.NewAnswers()
	return executors.NewSet(map[string]executors.Executor{
		"label":         object.Labels(),
		"annotate":      object.Annotations(),
		"patch-object":  object.Patcher{},
		"scale":         object.Scaler{},
		"hold-owners":   object.OwnerHolder{},
		"wait":          object.Waiter{},
		"apply-object":  object.Applier{},
		"delete-object": object.Deleter{},
		"for-each":      flow.Lister{},
		"for-each-node": flow.NodeLister{},
		"cordon":        node.Cordoner{},
		"uncordon":      node.Uncordoner{},
		"drain":         node.Drains{},
		"suspend":       flow.Suspender{},
		"approval":      flow.Approver{},
		"webhook":       http.Webhook{},
		"prometheus":    http.Prometheus{},
		"silence":       http.Silence{},
		"notification":  notify.New(),
		"function":      function.Runner{Answers: answers},
		"pipeline":      function.Pipeline{Answers: answers},
		"job":           workload.Jobs{},
		"restart":       workload.Restarter{},
		"health-check":  workload.HealthChecker{},
		"exec":          workload.NewExecs(),
		"backup":        backup.Backups{Databases: rds.NewBackups(session.NewPool(time.Now))},
		"hibernate":     object.Hibernates(),
		"wake":          object.Wakes(),
	})
}

// EKS says how clusters of EKS are reached.
func EKS() *eks.Clusters { return eks.NewClusters(session.NewPool(time.Now), time.Now) }

// Sleepers put targets of HibernatePlans to sleep, one for each type that package
// hibernate accepts.
func Sleepers() map[string]executors.Sleeper {
	accounts := session.NewPool(time.Now)
	return map[string]executors.Sleeper{
		hibernate.TypeASG:       asg.New(accounts),
		hibernate.TypeEC2:       ec2.New(accounts),
		hibernate.TypeEKS:       eks.New(accounts, karpenter.Sleeps{}),
		hibernate.TypeRDS:       rds.New(accounts),
		hibernate.TypeWorkload:  workload.Sleeps{},
		hibernate.TypeKarpenter: karpenter.Sleeps{},
		hibernate.TypeFunction:  function.Sleeps{Answers: function.NewAnswers()},
		hibernate.TypeNoop:      flow.Noop{},
	}
}
