package outbound

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// names resolves what a test says, each time with the next list of addresses.
func names(table map[string][]string) Lookup {
	return func(host string) ([]netip.Addr, error) {
		list, ok := table[host]
		if !ok {
			return nil, fmt.Errorf("no such host %q", host)
		}
		var out []netip.Addr
		for _, a := range list {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
}

type entries struct{ allow, deny []string }

func TestWhomTheRulesLetThrough(t *testing.T) {
	table := map[string][]string{
		"example.org": {"203.0.113.7"}, "api.example.org": {"203.0.113.8"}, "elsewhere.net": {"198.51.100.9"},
		"evil.net": {"169.254.169.254"}, "half.net": {"127.0.0.1", "203.0.113.9"}, "mapped.net": {"::ffff:127.0.0.1"},
		"svc.shop.svc": {"10.96.0.10"},
		// What a C resolver makes of decimal, octal and hexadecimal addresses.
		"2130706433": {"127.0.0.1"}, "0x7f000001": {"127.0.0.1"}, "127.1": {"127.0.0.1"}, "localhost": {"127.0.0.1", "::1"},
	}
	strict := entries{deny: []string{"10.0.0.0/8"}}
	for name, c := range map[string]struct {
		rules entries
		host  string
		want  string // the addresses, or why it is refused
	}{
		"a public name":                                         {host: "example.org", want: "203.0.113.7"},
		"a private address, such as a Service":                  {host: "svc.shop.svc", want: "10.96.0.10"},
		"a name that means the metadata service":                {host: "evil.net", want: "metadata"},
		"the metadata service by address":                       {host: "169.254.169.254", want: "metadata"},
		"the metadata service over IPv6":                        {host: "fd00:ec2::254", want: "metadata"},
		"Alibaba's metadata service":                            {host: "100.100.100.200", want: "metadata"},
		"Azure's wire server":                                   {host: "168.63.129.16", want: "metadata"},
		"another link-local address":                            {host: "169.254.1.1", want: "link-local"},
		"a link-local IPv6 address with a zone":                 {host: "fe80::1%eth0", want: "link-local"},
		"localhost":                                             {host: "localhost", want: "loopback"},
		"all of 127/8":                                          {host: "127.9.9.9", want: "loopback"},
		"IPv6 loopback":                                         {host: "::1", want: "loopback"},
		"loopback mapped into IPv6":                             {host: "::ffff:127.0.0.1", want: "loopback"},
		"a name that resolves to a mapped loopback":             {host: "mapped.net", want: "loopback"},
		"the metadata service mapped into IPv6":                 {host: "::ffff:a9fe:a9fe", want: "metadata"},
		"loopback behind NAT64":                                 {host: "64:ff9b::7f00:1", want: "loopback"},
		"the metadata service behind 6to4":                      {host: "2002:a9fe:a9fe::1", want: "metadata"},
		"loopback in the old compatible form":                   {host: "::7f00:1", want: "loopback"},
		"a public address behind NAT64":                         {host: "64:ff9b::cb00:7107", want: "64:ff9b::cb00:7107"},
		"a denied address behind NAT64":                         {rules: strict, host: "64:ff9b::a60:a", want: "deny names it"},
		"one behind a NAT64 of the network's own":               {rules: strict, host: "64:ff9b:1:fffe::a60:a", want: "deny names it"},
		"one whose prefix there has 48 bits":                    {rules: strict, host: "64:ff9b:1:a60:0:a00::", want: "deny names it"},
		"one whose prefix there has 56 bits":                    {rules: strict, host: "64:ff9b:1:aa0a:60:a::", want: "deny names it"},
		"one whose prefix there has 64 bits":                    {rules: strict, host: "64:ff9b:1:aabb:a:6000:a00:0", want: "deny names it"},
		"a public address behind a NAT64 of the network's own":  {rules: strict, host: "64:ff9b:1:fffe::cb00:7107", want: "64:ff9b:1:fffe::cb00:7107"},
		"a denied address behind 6to4":                          {rules: strict, host: "2002:a60:a::1", want: "deny names it"},
		"one translated without state":                          {rules: strict, host: "::ffff:0:10.96.0.10", want: "deny names it"},
		"the metadata service translated without state":         {host: "::ffff:0:a9fe:a9fe", want: "metadata"},
		"a denied address as a client of Teredo":                {rules: strict, host: "2001:0:cb00:7107:8000:63bf:f59f:fff5", want: "deny names it"},
		"one as a server of Teredo":                             {rules: strict, host: "2001:0:a60:a:8000:63bf:34ff:8ef8", want: "deny names it"},
		"a public client of a public server of Teredo":          {rules: strict, host: "2001:0:cb00:7107:8000:63bf:34ff:8ef8", want: "2001:0:cb00:7107:8000:63bf:34ff:8ef8"},
		"a denied address behind ISATAP":                        {rules: strict, host: "2001:db8:1:2:0:5efe:a60:a", want: "deny names it"},
		"one behind ISATAP that says it is unique":              {rules: strict, host: "2001:db8:1:2:200:5efe:a60:a", want: "deny names it"},
		"what only looks like ISATAP":                           {rules: strict, host: "2001:db8:1:2:100:5efe:a60:a", want: "2001:db8:1:2:100:5efe:a60:a"},
		"what looks so by its second half":                      {rules: strict, host: "2001:db8:1:2:1:5efe:a60:a", want: "2001:db8:1:2:1:5efe:a60:a"},
		"what begins like ISATAP":                               {rules: strict, host: "2001:db8:1:2:0:5eff:a60:a", want: "2001:db8:1:2:0:5eff:a60:a"},
		"what ends like ISATAP":                                 {rules: strict, host: "2001:db8:1:2:0:5ffe:a60:a", want: "2001:db8:1:2:0:5ffe:a60:a"},
		"a denied address in the old compatible form":           {rules: strict, host: "::a60:a", want: "deny names it"},
		"loopback beside a deny of its compatible form":         {rules: entries{allow: []string{"::1"}, deny: []string{"0.0.0.1"}}, host: "::1", want: "::1"},
		"a range in its mapped form":                            {rules: entries{deny: []string{"::ffff:10.0.0.0/104"}}, host: "svc.shop.svc", want: "deny names it"},
		"what is beside a range in its mapped form":             {rules: entries{deny: []string{"::ffff:10.0.0.0/104"}}, host: "11.0.0.1", want: "11.0.0.1"},
		"all mapped addresses":                                  {rules: entries{deny: []string{"::ffff:0.0.0.0/96"}}, host: "example.org", want: "deny names it"},
		"a wider range of IPv6 is none of IPv4":                 {rules: entries{deny: []string{"::/80"}}, host: "example.org", want: "203.0.113.7"},
		"the same with ones in it":                              {rules: entries{deny: []string{"::ffff:0:0/95"}}, host: "example.org", want: "203.0.113.7"},
		"and one of its own addresses":                          {rules: entries{deny: []string{"::ffff:0:0/95"}}, host: "::fffe:a60:a", want: "deny names it"},
		"a narrow range of IPv6 is no wider one":                {rules: entries{deny: []string{"2001:db8:1::/112"}}, host: "2001:db8:2::1", want: "2001:db8:2::1"},
		"an allow of a reserved range, to the bit":              {rules: entries{allow: []string{"169.254.0.0/16"}}, host: "169.254.1.1", want: "169.254.1.1"},
		"one of half the range":                                 {rules: entries{allow: []string{"169.254.0.0/15"}}, host: "169.254.1.1", want: "link-local"},
		"not the name that is all suffix":                       {rules: entries{allow: []string{"*.example.org"}}, host: ".example.org", want: "does not name it"},
		"an ordinary IPv6 address":                              {rules: strict, host: "2001:db8::a60:a", want: "2001:db8::a60:a"},
		"unspecified":                                           {host: "0.0.0.0", want: "unspecified"},
		"unspecified IPv6":                                      {host: "::", want: "unspecified"},
		"broadcast":                                             {host: "255.255.255.255", want: "multicast"},
		"a decimal address":                                     {host: "2130706433", want: "loopback"},
		"a hexadecimal address":                                 {host: "0x7f000001", want: "loopback"},
		"a short address":                                       {host: "127.1", want: "loopback"},
		"only the permitted ones of a name's addresses":         {host: "half.net", want: "203.0.113.9"},
		"loopback that allow names exactly":                     {rules: entries{allow: []string{"127.0.0.1/32"}}, host: "127.0.0.1", want: "127.0.0.1"},
		"loopback by its name when the address is allowed":      {rules: entries{allow: []string{"127.0.0.1"}}, host: "localhost", want: "127.0.0.1"},
		"the mapped form of an allowed address":                 {rules: entries{allow: []string{"127.0.0.1/32"}}, host: "::ffff:127.0.0.1", want: "::ffff:127.0.0.1"},
		"another loopback address than the allowed one":         {rules: entries{allow: []string{"127.0.0.1/32"}}, host: "127.0.0.2", want: "loopback"},
		"the whole range when allow names it":                   {rules: entries{allow: []string{"127.0.0.0/8"}}, host: "127.0.0.2", want: "127.0.0.2"},
		"nothing reserved by an allow of everything":            {rules: entries{allow: []string{"0.0.0.0/0", "::/0"}}, host: "127.0.0.1", want: "loopback"},
		"no metadata service by an allow of its range":          {rules: entries{allow: []string{"169.254.0.0/16"}}, host: "169.254.169.254", want: "metadata"},
		"the metadata service when allow names it":              {rules: entries{allow: []string{"169.254.169.254"}}, host: "evil.net", want: "169.254.169.254"},
		"a name below an allowed one":                           {rules: entries{allow: []string{"*.example.org"}}, host: "api.example.org", want: "203.0.113.8"},
		"a name below an allowed one, however it is spelled":    {rules: entries{allow: []string{"*.Example.org."}}, host: "API.example.org.", want: "no such host"},
		"not the name above the star":                           {rules: entries{allow: []string{"*.example.org"}}, host: "example.org", want: "does not name it"},
		"not a name that merely ends so":                        {rules: entries{allow: []string{"*.example.org"}}, host: "badexample.org", want: "does not name it"},
		"no other name where names are allowed":                 {rules: entries{allow: []string{"example.org"}}, host: "elsewhere.net", want: "does not name it"},
		"no address in place of a name where names are allowed": {rules: entries{allow: []string{"example.org"}}, host: "203.0.113.7", want: "not among its entries"},
		"an allowed address beside allowed names":               {rules: entries{allow: []string{"example.org", "203.0.113.0/24"}}, host: "203.0.113.7", want: "203.0.113.7"},
		"an allowed name does not open reserved addresses":      {rules: entries{allow: []string{"evil.net"}}, host: "evil.net", want: "metadata"},
		"no denied name":                                        {rules: entries{deny: []string{"*.example.org"}}, host: "api.example.org", want: "deny names it"},
		"no denied address, under whatever name":                {rules: entries{deny: []string{"203.0.113.0/24"}}, host: "example.org", want: "deny names it"},
		"no denied address in its mapped form":                  {rules: entries{deny: []string{"203.0.113.0/24"}}, host: "::ffff:203.0.113.7", want: "deny names it"},
		"nothing that is both allowed and denied":               {rules: entries{allow: []string{"example.org"}, deny: []string{"example.org"}}, host: "example.org", want: "deny names it"},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := New(c.rules.allow, c.rules.deny)
			if err != nil {
				t.Fatal(err)
			}
			got, err := rules.Resolve(c.host, names(table))
			text := strings.Trim(fmt.Sprint(got), "[]")
			if refusal := new(Refusal); errors.As(err, &refusal) {
				text = refusal.Why // the host itself may be what a case wants to be let through
			} else if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, c.want) || (err == nil) != (text == c.want) {
				t.Errorf("%s gives %q, want %q", c.host, text, c.want)
			}
		})
	}
}

func TestEntriesThatCannotBeReadAreNamed(t *testing.T) {
	for _, entry := range []string{"10.0.0.0/33", "1.2.3", "https://example.org", "exa mple.org", "", "*", "a..b", "*.*.example.org"} {
		for field, e := range map[string]entries{"outbound.allow": {allow: []string{entry}}, "outbound.deny": {deny: []string{"example.org", entry}}} {
			if _, err := New(e.allow, e.deny); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s: %q", field, entry)) {
				t.Errorf("%q in %s gives %v, want it named", entry, field, err)
			}
		}
	}
}

func TestHowLongANameMayBe(t *testing.T) {
	label := strings.Repeat("a", 63)
	longest := strings.Join([]string{label, label, label, strings.Repeat("b", 61)}, ".") // 253 letters
	for name, good := range map[string]bool{label + ".org": true, label + "a.org": false, longest: true, longest + "b": false, "a": true, "1a": true, "1": false} {
		if _, err := New([]string{name}, nil); (err == nil) != good {
			t.Errorf("a name of %d letters: %v", len(name), err)
		}
	}
}

func TestARefusalNamesTheAddressWhereTheNameDoesNot(t *testing.T) {
	address := netip.MustParseAddr("127.0.0.1")
	for want, r := range map[string]Refusal{
		"localhost (127.0.0.1) is refused: no": {Host: "localhost", Address: address, Why: "no"},
		"127.0.0.1 is refused: no":             {Host: "127.0.0.1", Address: address, Why: "no"},
		"example.org is refused: no":           {Host: "example.org", Why: "no"},
	} {
		if r.Error() != want || r.Refused() != want {
			t.Errorf("%q, want %q", r.Error(), want)
		}
	}
}

func TestAHostThatIsNotFoundIsNoRefusal(t *testing.T) {
	var rules Rules
	_, err := rules.Resolve("nowhere.net", names(nil))
	if refusal := new(Refusal); err == nil || errors.As(err, &refusal) {
		t.Errorf("%v", err)
	}
	if _, err := rules.Resolve("empty.net", names(map[string][]string{"empty.net": nil})); err == nil || err.Error() != "empty.net is refused: it has no address" {
		t.Errorf("%v", err)
	}
}
