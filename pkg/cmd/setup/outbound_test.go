package setup_test

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/outbound"
)

// What install --outbound strict prints keeps the agent from each private address, however it is
// written, and from none beside those ranges. docs/security.md names the ranges.
func TestAStrictConfigurationKeepsTheAgentFromPrivateAddresses(t *testing.T) {
	private := []string{ // the first and the last of each range
		"10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.255",
		"192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255", "240.0.0.0", "255.255.255.254",
		"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	}
	beside := []string{
		"9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.113.7",
		"fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::1",
	}
	strict := printedOutbound(t, "install --outbound strict")
	for _, address := range private {
		for form, a := range formsOf(netip.MustParseAddr(address)) {
			if got, err := strict.Resolve(a.String(), nil); err == nil {
				t.Errorf("%s, %s: the agent may call %v", address, form, got)
			}
		}
		if got, err := strict.Resolve("service.example.org", func(string) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(address)}, nil }); err == nil {
			t.Errorf("a name that means %s: the agent may call %v", address, got)
		}
	}
	for _, address := range beside {
		for form, a := range formsOf(netip.MustParseAddr(address)) {
			if _, err := strict.Resolve(a.String(), nil); err != nil {
				t.Errorf("%s, %s: %v", address, form, err)
			}
		}
	}
	open := printedOutbound(t, "install --outbound open")
	if _, err := open.Resolve("10.96.0.1", nil); err != nil {
		t.Errorf("open: %v", err)
	}
}

// formsOf are an address and, of one of IPv4, what others may bring it to by IPv6.
func formsOf(a netip.Addr) map[string]netip.Addr {
	forms := map[string]netip.Addr{"as it is": a}
	if !a.Is4() {
		return forms
	}
	b := a.As4()
	at := func(prefix string, begin int) netip.Addr {
		all := netip.MustParseAddr(prefix).As16()
		copy(all[begin:], b[:])
		return netip.AddrFrom16(all)
	}
	forms["mapped"] = at("::ffff:0:0", 12)
	forms["by NAT64"] = at("64:ff9b::", 12)
	forms["by a NAT64 of the network's own"] = at("64:ff9b:1::", 12)
	forms["translated without state"] = at("::ffff:0:0:0", 12)
	forms["by 6to4"] = at("2002::1", 2)
	forms["by ISATAP"] = at("2001:db8:1:2:0:5efe::", 12)
	return forms
}

// printedOutbound are the rules of the configuration that a command line prints.
func printedOutbound(t *testing.T, line string) outbound.Rules {
	t.Helper()
	printed := cmdtest.NewCluster(t, cmd.Run).Line(line)
	if printed.Code != 0 {
		t.Fatalf("%s: exit code %d: %s", line, printed.Code, printed.Err)
	}
	for text := range strings.SplitSeq(printed.Out, "\n---\n") {
		var cm corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(text), &cm); err != nil || cm.Kind != "ConfigMap" || cm.Name != annotations.AgentConfigName {
			continue
		}
		spec, faults := agentconfig.Parse([]byte(cm.Data[annotations.DataConfig]))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		rules, err := outbound.New(spec.Outbound.Allow, spec.Outbound.Deny)
		if err != nil {
			t.Fatal(err)
		}
		return rules
	}
	t.Fatalf("%s prints no configuration", line)
	return outbound.Rules{}
}
