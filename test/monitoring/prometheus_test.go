package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// prometheus is a server of its own, with the rules of manifests/monitoring but their `for`.
type prometheus struct {
	t     *testing.T
	dir   string
	url   string
	fired map[string]bool
}

// active is an alert as Prometheus tells it.
type active struct {
	Labels map[string]string `json:"labels"`
	State  string            `json:"state"`
}

func startPrometheus(t *testing.T) *prometheus {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("there is no prometheus: apt-get install prometheus")
	}
	p := &prometheus{t: t, dir: t.TempDir(), fired: map[string]bool{}}
	rules := regexp.MustCompile(`(?m)^ +for: .*\n`).ReplaceAll(file(t, manifests+"rules.yaml"), nil)
	p.write("rules.yaml", string(rules))
	p.write("prometheus.yaml", `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
- job_name: maint-agent
  honor_labels: true
  file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
`)
	p.write("targets.json", "[]")
	address := freeAddress(t)
	p.url = "http://" + address
	var said bytes.Buffer
	cmd := exec.Command(binary, "--config.file", filepath.Join(p.dir, "prometheus.yaml"), "--storage.tsdb.path", filepath.Join(p.dir, "data"), "--web.listen-address", address, "--log.level", "warn")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	for range 150 {
		if _, err := p.get("/-/ready"); err == nil {
			return p
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatal("prometheus does not become ready")
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// write replaces a file as a whole, since Prometheus reads it when it likes.
func (p *prometheus) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		p.t.Fatal(err)
	}
}

// scrapes has an agent scraped, and no other.
func (p *prometheus) scrapes(address string) {
	p.t.Helper()
	p.write("targets.json", fmt.Sprintf(`[{"targets": [%q]}]`, address))
}

func (p *prometheus) get(path string) ([]byte, error) {
	got, err := http.Get(p.url + path) //nolint:gosec,noctx // a server of the test
	if err != nil {
		return nil, err
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", got.Status, body)
	}
	return body, err
}

// alerts are those that are pending or fire.
func (p *prometheus) alerts() []active {
	p.t.Helper()
	body, err := p.get("/api/v1/alerts")
	if err != nil {
		p.t.Fatal(err)
	}
	var out struct{ Data struct{ Alerts []active } }
	if err := json.Unmarshal(body, &out); err != nil {
		p.t.Fatal(err)
	}
	for _, a := range out.Data.Alerts {
		p.fired[a.Labels["alertname"]] = p.fired[a.Labels["alertname"]] || a.State == "firing"
	}
	return out.Data.Alerts
}

// query says how many series an expression has now.
func (p *prometheus) query(expr string) (int, error) {
	found, err := p.asked(expr, true, time.Time{})
	return len(found), err
}
