package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

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

// CheckConfined fails when a policy that confines the agent refused something that the
// agent did as itself: the manifests bring those policies, and the agent has to be able
// to live with them.
func CheckConfined(auditLog string) error {
	refused := map[string]bool{}
	_, err := EachAudited(auditLog, 0, "ValidatingAdmissionPolicy 'maint-agent-", func(e AuditEvent) {
		if e.User.Username == AgentUser && e.Impersonated == nil {
			refused[fmt.Sprintf("%s %s %s/%s: %s", e.Verb, e.What(), e.Object.Namespace, e.Object.Name, e.Status.Message)] = true
		}
	})
	if err != nil || len(refused) == 0 {
		return err
	}
	return errors.New(strings.Join(slices.Sorted(maps.Keys(refused)), "\n"))
}

func usedRights(auditLog string) (map[string]bool, error) {
	used := map[string]bool{}
	_, err := EachAudited(auditLog, 0, AgentUser, func(e AuditEvent) {
		if e.User.Username == AgentUser && e.Object.Resource != "" {
			e.Note(used)
		}
	})
	return used, err
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
	resource := e.What()
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
