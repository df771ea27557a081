// Package outbound decides which hosts the agent may call, by the rules of its configuration.
package outbound

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Refusal is the error of a request that the rules do not permit.
type Refusal struct {
	Host    string     // as the URL has it
	Address netip.Addr // what it resolved to; invalid when the name itself is refused
	Why     string
}

func (r *Refusal) Error() string {
	if r.Address.IsValid() && r.Address.String() != r.Host {
		return fmt.Sprintf("%s (%s) is refused: %s", r.Host, r.Address, r.Why)
	}
	return fmt.Sprintf("%s is refused: %s", r.Host, r.Why)
}

// Refused says why nothing was dialed. A world that dials under the rules and does
// not know this package tells a refusal from a failure by this method.
func (r *Refusal) Refused() string { return r.Error() }

// Lookup finds the addresses of a host.
type Lookup func(host string) ([]netip.Addr, error)

// Rules are the entries of allow and deny, ready for use. The zero value permits every name and
// every address but link-local, loopback, metadata, multicast and unspecified ones.
type Rules struct {
	allowed, denied           []netip.Prefix
	allowedNames, deniedNames []string
}

// New reads entries: addresses, CIDRs, names, and *.example.org for every name below. Its error
// names those that are none of these; the rules do not hold then.
func New(allow, deny []string) (Rules, error) {
	var r Rules
	var errAllow, errDeny error
	r.allowed, r.allowedNames, errAllow = readEntries("allow", allow)
	r.denied, r.deniedNames, errDeny = readEntries("deny", deny)
	return r, errors.Join(errAllow, errDeny)
}

func readEntries(field string, entries []string) (prefixes []netip.Prefix, names []string, err error) {
	for _, entry := range entries {
		prefix, isAddress := readPrefix(entry)
		switch {
		case isAddress:
			prefixes = append(prefixes, prefix)
		case isName(entry):
			names = append(names, canonical(entry))
		default:
			err = errors.Join(err, fmt.Errorf("outbound.%s: %q is no address, CIDR or name; write it like 10.1.2.3, 10.0.0.0/8, example.org or *.example.org", field, entry))
		}
	}
	return prefixes, names, err
}

func readPrefix(entry string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(entry); err == nil {
		addr = addr.WithZone("").Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	p, err := netip.ParsePrefix(entry)
	if err != nil {
		return p, false
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), true
}

// isName accepts a host name, maybe with a star for everything below it. What
// looks like an address and is none (10.0.0.0/33, 1.2.3) is no name.
func isName(s string) bool {
	s = canonical(strings.TrimPrefix(s, "*."))
	if s == "" || len(s) > 253 {
		return false
	}
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// Resolve gives the addresses of a host that may be dialed, at least one; a *Refusal where there
// are only others.
func (r Rules) Resolve(host string, lookup Lookup) ([]netip.Addr, error) {
	literal, err := netip.ParseAddr(host)
	isLiteral := err == nil
	if refusal := r.checkName(host, isLiteral, literal); refusal != nil {
		return nil, refusal
	}
	found := []netip.Addr{literal}
	if !isLiteral {
		if found, err = lookup(host); err != nil {
			return nil, fmt.Errorf("look up %s: %w", host, err)
		}
	}
	var permitted []netip.Addr
	refusal := &Refusal{Host: host, Why: "it has no address"}
	for _, a := range found {
		if why := r.refuses(a); why != "" {
			refusal = &Refusal{Host: host, Address: a, Why: why}
			continue
		}
		permitted = append(permitted, a)
	}
	if len(permitted) == 0 {
		return nil, refusal
	}
	return permitted, nil
}

// checkName applies the rules about names. An address in a URL has none: where
// names are listed, it has to be listed, too.
func (r Rules) checkName(host string, isLiteral bool, literal netip.Addr) error {
	if isLiteral {
		if len(r.allowedNames) > 0 && !covers(r.allowed, literal.WithZone("").Unmap(), 0) {
			return &Refusal{Host: host, Address: literal, Why: "outbound.allow lists names, and this address is not among its entries"}
		}
		return nil
	}
	name := canonical(host)
	if matches(r.deniedNames, name) {
		return &Refusal{Host: host, Why: "outbound.deny names it"}
	}
	if len(r.allowedNames) > 0 && !matches(r.allowedNames, name) {
		return &Refusal{Host: host, Why: "outbound.allow does not name it"}
	}
	return nil
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if suffix, wild := strings.CutPrefix(p, "*"); p == name || wild && strings.HasSuffix(name, suffix) && len(name) > len(suffix) {
			return true
		}
	}
	return false
}

// refuses says why an address may not be dialed, or nothing. An address that
// carries others inside it, for a translator on the way, has to pass as all of them.
func (r Rules) refuses(a netip.Addr) string {
	a = a.WithZone("").Unmap()
	if covers(r.denied, a, 0) {
		return "outbound.deny names it"
	}
	for _, known := range reserved() {
		if known.prefix.Contains(a) && !covers(r.allowed, a, known.prefix.Bits()) {
			return known.what + " unless outbound.allow names that address"
		}
	}
	for _, inner := range embedded(a) {
		if why := r.refuses(inner); why != "" {
			return why
		}
	}
	return ""
}

// covers says whether one of the prefixes holds the address and is at least as
// narrow as bits.
func covers(prefixes []netip.Prefix, a netip.Addr, bits int) bool {
	for _, p := range prefixes {
		if p.Contains(a) && p.Bits() >= bits {
			return true
		}
	}
	return false
}

type reservedRange struct {
	prefix netip.Prefix
	what   string
}

// reserved are the addresses that no outside service has: RFC 6890's loopback,
// link-local, unspecified and multicast ranges, and where clouds answer with
// credentials to whoever asks.
func reserved() []reservedRange {
	var out []reservedRange
	for _, r := range []struct{ what, prefixes string }{
		{"metadata services are not called", "169.254.169.254/32 169.254.170.2/32 169.254.170.23/32 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32 fd00:ec2::254/128 fd00:ec2::23/128 fd20:ce::254/128"},
		{"loopback addresses are not called", "127.0.0.0/8 ::1/128"},
		{"link-local addresses are not called", "169.254.0.0/16 fe80::/10 fec0::/10"},
		{"unspecified addresses are not called", "0.0.0.0/8 ::/128"},
		{"multicast addresses are not called", "224.0.0.0/4 255.255.255.255/32 ff00::/8"},
	} {
		for _, p := range strings.Fields(r.prefixes) {
			out = append(out, reservedRange{netip.MustParsePrefix(p), r.what})
		}
	}
	return out
}

// embedded are the IPv4 addresses inside an IPv6 one, to which somebody on the way may
// send what is dialed: NAT64 (RFC 6052, RFC 8215), translation without state (RFC 7915),
// 6to4 (RFC 3056), the server and the client of Teredo (RFC 4380), ISATAP (RFC 5214) and
// the old IPv4-compatible form. IPv4-mapped ones are unmapped before.
func embedded(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	tail := netip.AddrFrom4([4]byte(b[12:16]))
	switch {
	case netip.MustParsePrefix("64:ff9b:1::/48").Contains(a):
		return translated(b)
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("::ffff:0:0:0/96").Contains(a):
		return []netip.Addr{tail}
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case netip.MustParsePrefix("2001::/32").Contains(a):
		client := [4]byte{^b[12], ^b[13], ^b[14], ^b[15]}
		return []netip.Addr{netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4(client)}
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe, // whatever the prefix
		netip.MustParsePrefix("::/96").Contains(a) && a != netip.IPv6Loopback():
		return []netip.Addr{tail}
	}
	return nil
}

// translated are the addresses that one below 64:ff9b:1::/48 may mean. A network chooses
// there how long the prefix of its translator is, and the address does not say: each
// reading of RFC 6052, 2.2 counts, but those that no translator sends anywhere.
func translated(b [16]byte) []netip.Addr {
	readings := [][4]byte{[4]byte(b[12:16])} // 96 bits
	if b[8] == 0 {
		readings = append(readings, [4]byte{b[6], b[7], b[9], b[10]}, [4]byte{b[7], b[9], b[10], b[11]}, [4]byte(b[9:13])) // 48, 56, 64
	}
	var out []netip.Addr
	for _, r := range readings {
		if r[0] != 0 {
			out = append(out, netip.AddrFrom4(r))
		}
	}
	return out
}
