package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// CreateOptions are those of the agent's own writes.
func CreateOptions() metav1.CreateOptions {
	return metav1.CreateOptions{FieldManager: annotations.ManagerAgent}
}

// UpdateOptions are those of the agent's own writes.
func UpdateOptions() metav1.UpdateOptions {
	return metav1.UpdateOptions{FieldManager: annotations.ManagerAgent}
}

// PatchOptions are those of the agent's own writes.
func PatchOptions() metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: annotations.ManagerAgent}
}
