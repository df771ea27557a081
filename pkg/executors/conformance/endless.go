package conformance

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"
)

// Of an endless list each page has pageSize items. So that a test ends whose subject reads on, there
// are lastPage pages.
const (
	pageSize = 500
	lastPage = 60
)

// EndlessLists is an API server whose lists of a kind have always another page, as the one of
// another cluster may. item is the n-th object.
func EndlessLists(t *testing.T, apiVersion, kind string, item func(n int) map[string]any) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("continue")) // the first has none
		items := make([]map[string]any, pageSize)
		for i := range items {
			items[i] = item(page*pageSize + i)
			items[i]["apiVersion"], items[i]["kind"] = apiVersion, kind
		}
		next := strconv.Itoa(page + 1)
		if page+1 >= lastPage {
			next = ""
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // who does not read on has what it wants
			"apiVersion": apiVersion, "kind": kind + "List", "metadata": map[string]any{"continue": next}, "items": items,
		})
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}
