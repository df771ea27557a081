package kube

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestNamesOfATable(t *testing.T) {
	const columns = `"columnDefinitions":[{"name":"Age","format":""},{"name":"Name","format":"name"}]`
	for name, c := range map[string]struct {
		status int
		body   string
		want   []string
		err    string
	}{
		"two":              {200, `{"kind":"Table",` + columns + `,"rows":[{"cells":["3d","a"]},{"cells":["1h","b"]}]}`, []string{"a", "b"}, ""},
		"none":             {200, `{"kind":"Table",` + columns + `}`, []string{}, ""},
		"no table":         {200, `{"kind":"ConfigMapList","items":[]}`, nil, "did not answer with a table"},
		"no column":        {200, `{"kind":"Table","rows":[]}`, nil, "did not answer with a table"},
		"a short row":      {200, `{"kind":"Table",` + columns + `,"rows":[{"cells":["3d"]}]}`, nil, "row 0 has no name"},
		"a name of digits": {200, `{"kind":"Table",` + columns + `,"rows":[{"cells":["3d",5]}]}`, nil, "cannot unmarshal number"},
		"no JSON":          {200, `hello`, nil, "invalid character"},
		"refused":          {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not you"}`, nil, "not you"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked *http.Request
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			k, err := NewBasic(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			got, err := NewCached(k.CoreV1().RESTClient()).Names(t.Context(), "configmaps", "shop", "maint.dev/kind=plan")
			if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q, %v", got, err)
			}
			q := asked.URL.Query()
			if asked.URL.Path != "/api/v1/namespaces/shop/configmaps" || q.Get("labelSelector") != "maint.dev/kind=plan" || q.Get("includeObject") != "None" || q.Get("resourceVersion") != "0" || !strings.Contains(asked.Header.Get("Accept"), "as=Table") {
				t.Errorf("asked %s, as %s", asked.URL, asked.Header.Get("Accept"))
			}
		})
	}
}
