package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// agentUser is who the agent is to the API server.
const agentUser = "system:serviceaccount:" + annotations.DefaultNamespace + ":maint-agent"

// AuditEvent is the part of an audit log's line that speaks of rights.
type AuditEvent struct {
	Verb string `json:"verb"`
	URI  string `json:"requestURI"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Impersonated *struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"impersonatedUser"`
	Object *struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// CheckRights compares the rules of roles of the manifests with what the API server
// recorded of a whole run of tests: a right too few is a fault, and so is one too
// many, but for those of the roles that stand in also.
func CheckRights(auditLog string, roles, also []string) error {
	used, err := usedRights(auditLog)
	if err != nil {
		return err
	}
	granted, err := grantedRights(roles)
	if err != nil {
		return err
	}
	others, err := grantedRights(also)
	if err != nil {
		return err
	}
	var wrong []string
	for right := range used {
		if !granted[right] && !others[right] {
			wrong = append(wrong, "used and not granted: "+right)
		}
	}
	for right := range granted {
		if !used[right] {
			wrong = append(wrong, "granted and not used: "+right)
		}
	}
	sort.Strings(wrong)
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

func usedRights(auditLog string) (map[string]bool, error) {
	f, err := os.Open(auditLog)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	used := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e AuditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		if e.User.Username == agentUser && e.Object != nil {
			e.Note(used)
		}
	}
	return used, lines.Err()
}

// Note adds the right that a request used.
func (e AuditEvent) Note(used map[string]bool) {
	if e.Impersonated != nil {
		used[" serviceaccounts impersonate"] = true
		for key := range e.Impersonated.Extra {
			used["authentication.k8s.io userextras/"+key+" impersonate"] = true
		}
		return
	}
	resource := e.Object.Resource
	if e.Object.Subresource != "" {
		resource += "/" + e.Object.Subresource
	}
	used[fmt.Sprintf("%s %s %s", e.Object.Group, resource, e.Verb)] = true
	if strings.Contains(e.URI, "sendInitialEvents=true") { // a list that is streamed: where an API server cannot, the client lists
		used[fmt.Sprintf("%s %s list", e.Object.Group, resource)] = true
	}
}

// grantedRights are the rules that the manifests bind to the agent by these roles.
func grantedRights(roles []string) (map[string]bool, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "manifests", "agent.yaml"))
	if err != nil {
		return nil, err
	}
	granted := map[string]bool{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
			return granted, nil
		} else if err != nil {
			continue // another kind's fields
		}
		if role.Kind != "ClusterRole" && role.Kind != "Role" || !slices.Contains(roles, role.Name) {
			continue
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						granted[fmt.Sprintf("%s %s %s", group, resource, verb)] = true
					}
				}
			}
		}
	}
}
