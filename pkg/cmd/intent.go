package cmd

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// change is what an intent does to annotations: a value, or nil to take the key
// away.
type change map[string]*string

func value(s string) *string { return &s }

// signed puts who and why beside an intent. Taking the intent away takes them
// away too.
func (c change) signed(intent, actor, reason string) change {
	for key, text := range map[string]string{annotations.Actor(intent): actor, annotations.Reason(intent): reason} {
		c[key] = nil
		if c[intent] != nil && text != "" {
			c[key] = value(text)
		}
	}
	return c
}

// dryRun is the --dry-run of commands that write.
type dryRun struct{ mode string }

func (d *dryRun) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.mode, "dry-run", "none", `"none", "client" (nothing is sent) or "server" (sent, and not kept)`)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "client"
}

func (d *dryRun) check(f *faults) {
	switch d.mode {
	case "none", "client", "server":
	default:
		f.add("--dry-run: %q is not one of none, client, server", d.mode)
	}
}

func (d *dryRun) client() bool { return d.mode == "client" }

// mark is what is added to a line that tells of something that was only tried.
func (d *dryRun) mark() string {
	switch d.mode {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}

func (d *dryRun) options() metav1.PatchOptions {
	o := metav1.PatchOptions{FieldManager: annotations.ManagerCLI}
	if d.mode == "server" {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return o
}

// annotate writes an intent on a document by JSON merge patch. decide looks at
// the document and says what to change; it is asked again when somebody else
// wrote in between, so that nobody's intent is lost. No change is no write.
func (k *cluster) annotate(ctx context.Context, cm *corev1.ConfigMap, dry *dryRun, decide func(*corev1.ConfigMap) (change, error)) error {
	for {
		c, err := decide(cm)
		if err != nil || len(c) == 0 || dry.client() {
			return err
		}
		patch, err := mergePatch(cm.ObjectMeta, c)
		if err != nil {
			return err
		}
		_, err = k.maps(cm.Namespace).Patch(ctx, cm.Name, types.MergePatchType, patch, dry.options())
		if !apierrors.IsConflict(err) {
			return plain(fmt.Sprintf("write to %s/%s", cm.Namespace, cm.Name), err)
		}
		uid := cm.UID
		if cm, err = k.maps(cm.Namespace).Get(ctx, cm.Name, metav1.GetOptions{}); err != nil {
			return plain("read again what somebody changed meanwhile", err)
		}
		if cm.UID != uid {
			return fmt.Errorf("%s/%s was deleted and created again meanwhile: look at it and ask again", cm.Namespace, cm.Name)
		}
	}
}

// mergePatch changes annotations of exactly the object that was looked at: with
// another uid or version, the API server refuses.
func mergePatch(m metav1.ObjectMeta, c change) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": m.UID, "resourceVersion": m.ResourceVersion, "annotations": c,
	}})
}
