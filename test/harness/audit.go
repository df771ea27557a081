package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// AgentUser is who the agent is to the API server.
const AgentUser = "system:serviceaccount:" + annotations.DefaultNamespace + ":maint-agent"

// AuditEvent is a line of an audit log: one request, or one stage of a watch.
type AuditEvent struct {
	ID        string `json:"auditID"`
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	URI       string `json:"requestURI"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	Impersonated *struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"impersonatedUser"`
	Object struct { // empty where the request is about none
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	// The bodies, where the audit policy keeps them.
	Request  json.RawMessage `json:"requestObject"`
	Response json.RawMessage `json:"responseObject"`
	Status   struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Received metav1.MicroTime `json:"requestReceivedTimestamp"`
	Answered metav1.MicroTime `json:"stageTimestamp"`
}

// What is the resource that was asked for, with its subresource: "pods/eviction".
func (e AuditEvent) What() string {
	if e.Object.Subresource != "" {
		return e.Object.Resource + "/" + e.Object.Subresource
	}
	return e.Object.Resource
}

// EachAudited hands on the events of an audit log from a length on whose lines hold a
// text (empty: all), which costs less than to read them, and returns the length at
// which to go on: the last line may still be being written. The API server
// writes a line before it answers, so whoever has had its answer finds it here.
func EachAudited(path string, from int64, with string, see func(AuditEvent)) (end int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return from, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, err
	}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return from, nil
		case err != nil:
			return from, fmt.Errorf("read %s: %w", path, err)
		}
		from += int64(len(line))
		if !bytes.Contains(line, []byte(with)) {
			continue
		}
		var e AuditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return from, fmt.Errorf("read %s: %w", path, err)
		}
		see(e)
	}
}
