package install_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// prisoner is a client with a token of the agent's ServiceAccount, and the rights that
// whoever stole it could wish for: what is refused, the policies refuse.
func (l *lab) prisoner(namespace string) kubernetes.Interface {
	l.Helper()
	config, err := l.cluster.ServiceAccountConfig(l.ctx, namespace, "maint-agent")
	l.must(err)
	kube, err := kubernetes.NewForConfig(config)
	l.must(err)
	everything := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "agent-is-admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "maint-agent", Namespace: namespace}},
	}
	_, err = l.kube.RbacV1().ClusterRoleBindings().Create(l.ctx, everything, metav1.CreateOptions{})
	l.must(err)
	l.Cleanup(func() {
		_ = l.kube.RbacV1().ClusterRoleBindings().Delete(l.ctx, everything.Name, metav1.DeleteOptions{})
	})
	return kube
}

// confined waits until the API server knows the policies and the rights.
func (l *lab) confined(agent kubernetes.Interface) {
	l.Helper()
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for what, try := range map[string]func() error{
		"the policy over ConfigMaps": func() error {
			_, err := agent.CoreV1().ConfigMaps("default").Create(l.ctx, configMap("default", "probe", "", nil), dry)
			return err
		},
		"the policy over Secrets": func() error {
			_, err := agent.CoreV1().Secrets("default").Create(l.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}, dry)
			return err
		},
		"the policy over namespaces": func() error {
			_, err := agent.CoreV1().Namespaces().Create(l.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}, dry)
			return err
		},
		"the policy over nodes": func() error {
			_, err := agent.CoreV1().Nodes().Create(l.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}, dry)
			return err
		},
	} {
		l.eventually(what+" is in force", func() (bool, string) {
			err := try()
			return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"), fmt.Sprint(err)
		})
	}
}

func configMap(namespace, name, kind string, data map[string]string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	if kind != "" {
		cm.Labels = map[string]string{annotations.LabelKind: kind}
	}
	return cm
}

// cell is what the confined agent finds: documents, records, a node, Secrets.
type cell struct {
	*lab
	agent kubernetes.Interface
	ns    string
}

func newCell(l *lab) *cell {
	l.Helper()
	c := &cell{lab: l, agent: l.prisoner(home), ns: l.cluster.Namespace(l.T)}
	for _, cm := range []*corev1.ConfigMap{
		configMap(c.ns, "weekly", annotations.KindPlan, map[string]string{annotations.DataPlan: "text"}),
		configMap(c.ns, "windows", annotations.KindPolicy, map[string]string{annotations.DataPolicy: "text"}),
		configMap(c.ns, "settings", "", map[string]string{"a": "b"}),
		configMap(c.ns, "unknown", "something-else", nil),
		configMap(metav1.NamespaceSystem, "aws-auth", "", map[string]string{"mapRoles": "[]"}),
	} {
		_, err := l.kube.CoreV1().ConfigMaps(cm.Namespace).Create(l.ctx, cm, metav1.CreateOptions{})
		l.must(err)
		l.Cleanup(func() { _ = l.kube.CoreV1().ConfigMaps(cm.Namespace).Delete(l.ctx, cm.Name, metav1.DeleteOptions{}) })
	}
	for _, s := range []*corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "sinks"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: "password"}}} {
		_, err := l.kube.CoreV1().Secrets(s.Namespace).Create(l.ctx, s, metav1.CreateOptions{})
		l.must(err)
		l.Cleanup(func() { _ = l.kube.CoreV1().Secrets(s.Namespace).Delete(l.ctx, s.Name, metav1.DeleteOptions{}) })
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"pool": "gpu"}, Annotations: map[string]string{"example.org/owner": "ops"}},
		Spec:       corev1.NodeSpec{ProviderID: "cloud:///1", Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}},
	}
	n, err := l.kube.CoreV1().Nodes().Create(l.ctx, n, metav1.CreateOptions{})
	l.must(err)
	l.Cleanup(func() { _ = l.kube.CoreV1().Nodes().Delete(l.ctx, n.Name, metav1.DeleteOptions{}) })
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}}
	n.Status.Images = []corev1.ContainerImage{{Names: []string{"example.org/one"}}}
	_, err = l.kube.CoreV1().Nodes().UpdateStatus(l.ctx, n, metav1.UpdateOptions{})
	l.must(err)
	l.confined(c.agent)
	return c
}

func (c *cell) create(cm *corev1.ConfigMap) error {
	_, err := c.agent.CoreV1().ConfigMaps(cm.Namespace).Create(c.ctx, cm, metav1.CreateOptions{FieldManager: annotations.ManagerAgent})
	return err
}

func (c *cell) merge(namespace, name, patch string) error {
	_, err := c.agent.CoreV1().ConfigMaps(namespace).Patch(c.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: annotations.ManagerAgent})
	return err
}

func (c *cell) node(patch string, sub ...string) error {
	_, err := c.agent.CoreV1().Nodes().Patch(c.ctx, "worker", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: annotations.ManagerAgent}, sub...)
	return err
}

func (c *cell) namespace(patch string, sub ...string) error {
	_, err := c.agent.CoreV1().Namespaces().Patch(c.ctx, c.ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: annotations.ManagerAgent}, sub...)
	return err
}

func (c *cell) conditions(patch string) error {
	_, err := c.agent.CoreV1().Nodes().Patch(c.ctx, "worker", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: annotations.ManagerAgent}, "status")
	return err
}

func (c *cell) secret(namespace, name string, how corev1.SecretType) error {
	_, err := c.agent.CoreV1().Secrets(namespace).Create(c.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}}, Type: how}, metav1.CreateOptions{})
	return err
}

func TestTheAgentsTokenIsRefusedWhatTheAgentDoesNotDo(t *testing.T) {
	l := newLab(t)
	l.install(thisVersion)
	c := newCell(l)
	const (
		kubeSystem = "the agent writes no ConfigMap in kube-system; 'kubectl maint install --kube-system' lets it"
		makes      = "the agent makes only ConfigMaps of its own kinds, by the names that it gives them"
		changes    = "the agent changes only ConfigMaps of its own kinds, and annotations on documents of maint.dev"
		document   = "of a document the agent changes annotations of maint.dev, and nothing else"
		others     = "of a document the agent changes annotations of maint.dev, and no others"
		secrets    = "the agent makes the Secret maint-agent-key in its own namespace, and writes no other"
		metadata   = "of a node's metadata the agent changes annotations and labels of maint.dev, and no others"
		spec       = "of a node's spec the agent changes unschedulable, and nothing else"
		status     = "of a node's status the agent changes the lifecycle conditions, and nothing else"
		node       = "the agent makes and deletes no node"
		namespace  = "on a namespace the agent writes status.maint.dev/frozen, and nothing else"
	)
	for _, x := range []struct {
		name string
		do   func() error
		told string
	}{
		{"who may enter a cluster of EKS", func() error {
			return c.merge(metav1.NamespaceSystem, "aws-auth", `{"data":{"mapRoles":"mine"}}`)
		}, kubeSystem},
		{"a record in kube-system", func() error {
			return c.create(configMap(metav1.NamespaceSystem, "maint-run-a-b", annotations.KindRun, nil))
		}, kubeSystem},
		{"a ConfigMap without our label", func() error { return c.create(configMap(c.ns, "new", "", nil)) }, makes},
		{"a ConfigMap with our label and another name", func() error { return c.create(configMap(c.ns, "coredns", annotations.KindRun, nil)) }, makes},
		{"a plan of its own", func() error { return c.create(configMap(c.ns, "mine", annotations.KindPlan, nil)) }, makes},
		{"a plan by the name of a run", func() error { return c.create(configMap(c.ns, "maint-run-a-b", annotations.KindPlan, nil)) }, makes},
		{"the heartbeat in another namespace", func() error {
			return c.create(configMap(c.ns, annotations.HeartbeatName, annotations.KindHeartbeat, nil))
		}, makes},
		{"the data of a ConfigMap without our label", func() error { return c.merge(c.ns, "settings", `{"data":{"a":"c"}}`) }, changes},
		{"an annotation of ours on a ConfigMap without our label", func() error {
			return c.merge(c.ns, "settings", `{"metadata":{"annotations":{"status.maint.dev/phase":"Idle"}}}`)
		}, changes},
		{"our label on a ConfigMap that had none", func() error { return c.merge(c.ns, "settings", `{"metadata":{"labels":{"maint.dev/kind":"run"}}}`) }, changes},
		{"a kind that is not known", func() error {
			return c.merge(c.ns, "unknown", `{"metadata":{"annotations":{"status.maint.dev/phase":"Idle"}}}`)
		}, changes},
		{"deleting a ConfigMap without our label", func() error {
			return c.agent.CoreV1().ConfigMaps(c.ns).Delete(c.ctx, "settings", metav1.DeleteOptions{})
		}, changes},
		{"deleting a plan", func() error {
			return c.agent.CoreV1().ConfigMaps(c.ns).Delete(c.ctx, "weekly", metav1.DeleteOptions{})
		}, changes},
		{"making a plan a run", func() error { return c.merge(c.ns, "weekly", `{"metadata":{"labels":{"maint.dev/kind":"run"}}}`) }, changes},
		{"the data of a plan", func() error { return c.merge(c.ns, "weekly", `{"data":{"plan.yaml":"other"}}`) }, document},
		{"more data of a plan", func() error { return c.merge(c.ns, "weekly", `{"binaryData":{"x":"YQ=="}}`) }, document},
		{"making a plan one that cannot be changed", func() error { return c.merge(c.ns, "weekly", `{"immutable":true}`) }, document},
		{"making a plan a policy", func() error { return c.merge(c.ns, "weekly", `{"metadata":{"labels":{"maint.dev/kind":"policy"}}}`) }, changes},
		{"taking our label off a plan", func() error { return c.merge(c.ns, "weekly", `{"metadata":{"labels":{"maint.dev/kind":null}}}`) }, changes},
		{"the data of a policy", func() error { return c.merge(c.ns, "windows", `{"data":{"policy.yaml":"other"}}`) }, document},
		{"the data of its own configuration", func() error { return c.merge(home, annotations.AgentConfigName, `{"data":{"config.yaml":"other"}}`) }, document},
		{"the account of a plan", func() error {
			return c.merge(c.ns, "weekly", `{"metadata":{"labels":{"maint.dev/service-account":"admin"}}}`)
		}, document},
		{"an owner of a plan", func() error {
			return c.merge(c.ns, "weekly", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"settings","uid":"1"}]}}`)
		}, document},
		{"a finalizer of a plan", func() error { return c.merge(c.ns, "weekly", `{"metadata":{"finalizers":["example.org/stay"]}}`) }, document},
		{"somebody's annotation of a plan", func() error {
			return c.merge(c.ns, "weekly", `{"metadata":{"annotations":{"example.org/owner":"me"}}}`)
		}, others},
		{"an annotation of a plan that only looks like ours", func() error {
			return c.merge(c.ns, "weekly", `{"metadata":{"annotations":{"notmaint.dev/phase":"me"}}}`)
		}, others},
		{"a Secret in its namespace", func() error { return c.secret(home, "mine", corev1.SecretTypeOpaque) }, secrets},
		{"its key in another namespace", func() error { return c.secret(c.ns, "maint-agent-key", corev1.SecretTypeOpaque) }, secrets},
		{"its key as a token of another account", func() error { return c.secret(home, "maint-agent-key", corev1.SecretTypeServiceAccountToken) }, secrets},
		{"the Secret of the sinks", func() error {
			_, err := c.agent.CoreV1().Secrets(home).Patch(c.ctx, "sinks", types.MergePatchType, []byte(`{"data":{"ops":"YQ=="}}`), metav1.PatchOptions{})
			return err
		}, secrets},
		{"another key", func() error {
			if _, err := l.kube.CoreV1().Secrets(home).Create(c.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "maint-agent-key"}}, metav1.CreateOptions{}); err != nil {
				return err
			}
			l.Cleanup(func() { _ = l.kube.CoreV1().Secrets(home).Delete(c.ctx, "maint-agent-key", metav1.DeleteOptions{}) })
			_, err := c.agent.CoreV1().Secrets(home).Patch(c.ctx, "maint-agent-key", types.MergePatchType, []byte(`{"data":{"key":"YQ=="}}`), metav1.PatchOptions{})
			return err
		}, secrets},
		{"deleting a Secret", func() error { return c.agent.CoreV1().Secrets(c.ns).Delete(c.ctx, "password", metav1.DeleteOptions{}) }, secrets},
		{"somebody's annotation of a node", func() error { return c.node(`{"metadata":{"annotations":{"example.org/owner":null}}}`) }, metadata},
		{"a label of a node", func() error { return c.node(`{"metadata":{"labels":{"pool":"cpu"}}}`) }, metadata},
		{"a label of a node, by its status", func() error { return c.node(`{"metadata":{"labels":{"pool":"cpu"}}}`, "status") }, metadata},
		{"a finalizer of a node", func() error { return c.node(`{"metadata":{"finalizers":["example.org/stay"]}}`) }, metadata},
		{"an owner of a node", func() error {
			return c.node(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"settings","uid":"1"}]}}`)
		}, metadata},
		{"a taint", func() error { return c.node(`{"spec":{"taints":[{"key":"mine","effect":"NoExecute"}]}}`) }, spec},
		{"no taints", func() error { return c.node(`{"spec":{"taints":null}}`) }, spec},
		{"a field that a node had not", func() error { return c.node(`{"spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24"]}}`) }, spec},
		{"a cordon with a taint", func() error { return c.node(`{"spec":{"unschedulable":true,"taints":null}}`) }, spec},
		{"a node's readiness", func() error { return c.conditions(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`) }, status},
		{"a condition of somebody else", func() error { return c.conditions(`{"status":{"conditions":[{"type":"Mine","status":"True"}]}}`) }, status},
		{"no conditions", func() error { return c.node(`{"status":{"conditions":null}}`, "status") }, status},
		{"another field of the status", func() error { return c.node(`{"status":{"images":null}}`, "status") }, status},
		{"a new field of the status", func() error { return c.node(`{"status":{"capacity":{"cpu":"1"}}}`, "status") }, status},
		{"somebody's annotation of a namespace", func() error {
			return c.namespace(`{"metadata":{"annotations":{"example.org/owner":"me","status.maint.dev/frozen":"x=frozen"}}}`)
		}, namespace},
		{"an intent on a namespace", func() error { return c.namespace(`{"metadata":{"annotations":{"maint.dev/pause":"true"}}}`) }, namespace},
		{"a label of a namespace", func() error {
			return c.namespace(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
		}, namespace},
		{"a finalizer of a namespace", func() error { return c.namespace(`{"metadata":{"finalizers":["example.org/stay"]}}`) }, namespace},
		{"the status of a namespace", func() error { return c.namespace(`{"metadata":{"annotations":{"a":"b"}}}`, "status") }, namespace},
		{"a namespace", func() error {
			_, err := c.agent.CoreV1().Namespaces().Create(c.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
			return err
		}, namespace},
		{"deleting a namespace", func() error { return c.agent.CoreV1().Namespaces().Delete(c.ctx, c.ns, metav1.DeleteOptions{}) }, namespace},
		{"a node", func() error {
			_, err := c.agent.CoreV1().Nodes().Create(c.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
			return err
		}, node},
		{"deleting a node", func() error { return c.agent.CoreV1().Nodes().Delete(c.ctx, "worker", metav1.DeleteOptions{}) }, node},
	} {
		t.Run(x.name, func(t *testing.T) {
			err := x.do()
			if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), ": "+x.told) {
				t.Errorf("it was not refused in these words: %q\n%v", x.told, err)
			}
		})
	}
}

func TestTheAgentsTokenMayWhatTheAgentDoes(t *testing.T) {
	l := newLab(t)
	l.install(thisVersion)
	c := newCell(l)
	uid := func(cm *corev1.ConfigMap) metav1.DeleteOptions {
		return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &cm.UID}}
	}
	record := func(namespace, name, kind string) func() error {
		return func() error {
			maps := c.agent.CoreV1().ConfigMaps(namespace)
			cm := configMap(namespace, name, kind, map[string]string{"data": "one"})
			cm.Finalizers = []string{annotations.Finalizer}
			cm, err := maps.Create(c.ctx, cm, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			cm.Data["data"], cm.Finalizers = "two", nil
			cm.OwnerReferences = []metav1.OwnerReference{annotations.PlanOwner("weekly", "1")}
			cm.Annotations = map[string]string{annotations.StatusPhase: "Succeeded"}
			if cm, err = maps.Update(c.ctx, cm, metav1.UpdateOptions{}); err != nil {
				return err
			}
			return maps.Delete(c.ctx, name, uid(cm))
		}
	}
	for _, x := range []struct {
		name string
		do   func() error
	}{
		{"a run", record(c.ns, "maint-run-weekly-abc", annotations.KindRun)},
		{"a ledger", record(c.ns, annotations.LedgerName("weekly", "1"), annotations.KindLedger)},
		{"a part of a ledger", record(c.ns, annotations.ShardName("weekly", "1", 3), annotations.KindLedger)},
		{"the record of gates", record(c.ns, annotations.GateName("windows"), annotations.KindGate)},
		{"restore data", record(c.ns, "maint-restore-weekly-abc", annotations.KindRestore)},
		{"its heartbeat", record(home, annotations.HeartbeatName, annotations.KindHeartbeat)},
		{"the record of gates as it is written", func() error {
			cm, err := annotations.GateObject(c.ns, policy.GateRecord{Policy: "windows"})
			if err != nil {
				return err
			}
			if err := c.create(cm); err != nil {
				return err
			}
			return c.agent.CoreV1().ConfigMaps(c.ns).Delete(c.ctx, cm.Name, metav1.DeleteOptions{})
		}},
		{"a run that somebody named", func() error {
			_, err := l.kube.CoreV1().ConfigMaps(c.ns).Create(c.ctx, configMap(c.ns, "by-hand", annotations.KindRun, nil), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			l.Cleanup(func() { _ = l.kube.CoreV1().ConfigMaps(c.ns).Delete(c.ctx, "by-hand", metav1.DeleteOptions{}) })
			return c.merge(c.ns, "by-hand", `{"metadata":{"annotations":{"status.maint.dev/message":"broken"}}}`)
		}},
		{"the status of a plan", func() error {
			return c.merge(c.ns, "weekly", `{"metadata":{"annotations":{"status.maint.dev/phase":"Idle","status.maint.dev/message":"m"}}}`)
		}},
		{"taking a status back", func() error {
			return c.merge(c.ns, "weekly", `{"metadata":{"annotations":{"status.maint.dev/message":null}}}`)
		}},
		{"taking an intent that was handled, with its actor", func() error {
			_, err := l.kube.CoreV1().ConfigMaps(c.ns).Patch(c.ctx, "weekly", types.MergePatchType, []byte(`{"metadata":{"annotations":{"maint.dev/skip":"next","actor.maint.dev/skip":"x","example.org/owner":"ops"}}}`), metav1.PatchOptions{})
			if err != nil {
				return err
			}
			return c.merge(c.ns, "weekly", `{"metadata":{"annotations":{"maint.dev/skip":null,"actor.maint.dev/skip":null,"reason.maint.dev/skip":null}}}`)
		}},
		{"the status of a policy", func() error {
			return c.merge(c.ns, "windows", `{"metadata":{"annotations":{"status.maint.dev/permitted":"true"}}}`)
		}},
		{"the status of its configuration", func() error {
			return c.merge(home, annotations.AgentConfigName, `{"metadata":{"annotations":{"status.maint.dev/conditions":"[]"}}}`)
		}},
		{"the status of a plan as large as one may be", func() error {
			_, err := l.kube.CoreV1().ConfigMaps(c.ns).Create(c.ctx, configMap(c.ns, "large", annotations.KindPlan, map[string]string{annotations.DataPlan: strings.Repeat("# a line of a comment that fills the plan\n", 24_000)}), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			return c.merge(c.ns, "large", `{"metadata":{"annotations":{"status.maint.dev/phase":"Invalid"}}}`)
		}},
		{"what is frozen in a namespace", func() error {
			return c.namespace(`{"metadata":{"annotations":{"status.maint.dev/frozen":"configmaps/x=frozen"}}}`)
		}},
		{"that nothing is", func() error { return c.namespace(`{"metadata":{"annotations":{"status.maint.dev/frozen":null}}}`) }},
		{"its key", func() error {
			l.Cleanup(func() {
				_ = l.kube.CoreV1().Secrets(home).Delete(c.ctx, "maint-agent-key", metav1.DeleteOptions{})
			})
			return c.secret(home, "maint-agent-key", corev1.SecretTypeOpaque)
		}},
		{"a cordon with its record and the status of a request", func() error {
			n, err := l.kube.CoreV1().Nodes().Get(c.ctx, "worker", metav1.GetOptions{})
			if err != nil {
				return err
			}
			on := true
			patch, err := annotations.NodePatch(n.UID, n.ResourceVersion, nodes.Step{
				Statuses: map[string]nodes.Status{"gpu": {Phase: nodes.Cordoning}}, CordonChanged: true, Cordon: &nodes.Cordon{By: []string{"gpu"}}, Unschedulable: &on,
			})
			if err != nil {
				return err
			}
			return c.node(string(patch))
		}},
		{"an uncordon", func() error {
			return c.node(`{"spec":{"unschedulable":null},"metadata":{"annotations":{"status.maint.dev/cordoned":null}}}`)
		}},
		{"a lifecycle condition", func() error {
			return c.conditions(`{"status":{"conditions":[{"type":"DrainInProgress","status":"True","reason":"DrainStarted"}]}}`)
		}},
		{"two more, and the end of one", func() error {
			return c.conditions(`{"status":{"conditions":[{"type":"DrainInProgress","status":"False"},{"type":"Drained","status":"True"},{"type":"MaintenanceInProgress","status":"True"}]}}`)
		}},
		{"a lifecycle condition, by server-side apply", func() error {
			b, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "worker"}, "status": map[string]any{
				"conditions": []any{map[string]any{"type": "MaintenancePlanned", "status": "True", "reason": "MaintenanceWindow"}},
			}})
			if err != nil {
				return err
			}
			_, err = c.agent.CoreV1().Nodes().Patch(c.ctx, "worker", types.ApplyPatchType, b, metav1.PatchOptions{FieldManager: annotations.ManagerAgent}, "status")
			return err
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			if err := x.do(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestThePoliciesConfineNobodyButTheAgent(t *testing.T) {
	l := newLab(t)
	l.install(thisVersion)
	c := newCell(l)
	t.Run("an admin", func(t *testing.T) {
		if _, err := l.kube.CoreV1().ConfigMaps(c.ns).Create(c.ctx, configMap(c.ns, "new", "", nil), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := l.kube.CoreV1().Nodes().Patch(c.ctx, "worker", types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("who the agent acts as", func(t *testing.T) {
		config, err := l.cluster.ServiceAccountConfig(l.ctx, home, "maint-agent")
		l.must(err)
		config.Impersonate.UserName = "system:serviceaccount:" + c.ns + ":maint-runner"
		runner, err := kubernetes.NewForConfig(config)
		l.must(err)
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "maint-runner"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"patch"}}}}
		_, err = l.kube.RbacV1().Roles(c.ns).Create(l.ctx, role, metav1.CreateOptions{})
		l.must(err)
		_, err = l.kube.RbacV1().RoleBindings(c.ns).Create(l.ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "maint-runner"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "maint-runner"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "maint-runner", Namespace: c.ns}},
		}, metav1.CreateOptions{})
		l.must(err)
		l.eventually("a step of a plan changes a ConfigMap", func() (bool, string) {
			_, err := runner.CoreV1().ConfigMaps(c.ns).Patch(l.ctx, "settings", types.MergePatchType, []byte(`{"data":{"a":"by a step"}}`), metav1.PatchOptions{})
			return err == nil, fmt.Sprint(err) // until the API server has seen the Role
		})
	})
}

func TestKubeSystemIsOpenedByAFlagAndStaysSo(t *testing.T) {
	l := newLab(t)
	l.install(thisVersion, "--kube-system")
	l.install(nextVersion)
	c := newCell(l)
	l.eventually("the API server knows the policy that lets it", func() (bool, string) { // of an earlier installation it may know one that does not
		err := c.create(configMap(metav1.NamespaceSystem, "maint-run-a-b", annotations.KindRun, nil))
		return err == nil, fmt.Sprint(err)
	})
	l.must(l.kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(l.ctx, "maint-run-a-b", metav1.DeleteOptions{}))
	if err := c.merge(metav1.NamespaceSystem, "aws-auth", `{"data":{"mapRoles":"mine"}}`); !apierrors.IsForbidden(err) {
		t.Errorf("a ConfigMap there that is not the agent's: %v", err)
	}
}

// Of the manifests alone: no other right was given.
func TestTheRightsThatInstallGivesAreNarrow(t *testing.T) {
	l := newLab(t)
	l.install(thisVersion)
	config, err := l.cluster.ServiceAccountConfig(l.ctx, home, "maint-agent")
	l.must(err)
	agent, err := kubernetes.NewForConfig(config)
	l.must(err)
	only := func(name string) metav1.ListOptions {
		return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	}
	lease := func(name string) error {
		_, err := agent.CoordinationV1().Leases(home).Get(l.ctx, name, metav1.GetOptions{})
		return err
	}
	watch := func(name string) error {
		w, err := agent.CoordinationV1().Leases(home).Watch(l.ctx, only(name))
		if err == nil {
			w.Stop()
		}
		return err
	}
	secret := func(name string) error {
		_, err := agent.CoreV1().Secrets(home).List(l.ctx, only(name))
		return err
	}
	l.eventually("the agent has its rights", func() (bool, string) {
		err := lease(annotations.LeaseName)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	for _, x := range []struct {
		name string
		err  error
		may  bool
	}{
		{"watch its own lease", watch(annotations.LeaseName), true},
		{"read another lease", lease("another"), false},
		{"watch another lease", watch("another"), false},
		{"list its key", secret("maint-agent-key"), true},
		{"list another Secret", secret("sinks"), false},
		{"delete its key", agent.CoreV1().Secrets(home).Delete(l.ctx, "maint-agent-key", metav1.DeleteOptions{}), false},
		{"delete a node", agent.CoreV1().Nodes().Delete(l.ctx, "any", metav1.DeleteOptions{}), false},
	} {
		if refused := apierrors.IsForbidden(x.err); refused == x.may {
			t.Errorf("the agent may %s: %v, want %v: %v", x.name, !refused, x.may, x.err)
		}
	}
}
