package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"runtime/debug"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// billOfMaterials says what a binary is made of, in CycloneDX: the modules that Go wrote
// into it.
func billOfMaterials(name, version string, p platform, binary string, from source) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read what %s is made of: %w", binary, err)
	}
	sum, err := checksum(binary)
	if err != nil {
		return nil, err
	}
	own := reference(&debug.Module{Path: info.Main.Path, Version: version})
	bill := cdx.NewBOM()
	bill.SerialNumber = serial(own, p.String(), sum)
	bill.Metadata = &cdx.Metadata{
		Timestamp: from.at.Format("2006-01-02T15:04:05Z"),
		Component: &cdx.Component{
			BOMRef: own, Type: cdx.ComponentTypeApplication, Name: name, Version: version, PackageURL: own,
			Description: p.String(), Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		},
	}
	goItself := "pkg:golang/std@" + info.GoVersion[len("go"):]
	components := []cdx.Component{{BOMRef: goItself, Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion, PackageURL: goItself}}
	refs := []string{goItself}
	for _, m := range info.Deps {
		c := component(m)
		components, refs = append(components, c), append(refs, c.BOMRef)
	}
	bill.Components = &components
	bill.Dependencies = &[]cdx.Dependency{{Ref: own, Dependencies: &refs}}
	var out bytes.Buffer
	err = cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
	return out.Bytes(), err
}

func component(m *debug.Module) cdx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := cdx.Component{BOMRef: reference(m), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: reference(m)}
	if m.Sum != "" { // of the module's files, as go.sum has it
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// reference is a package URL.
func reference(m *debug.Module) string { return "pkg:golang/" + m.Path + "@" + m.Version }

// serial is a UUID that follows from what is described: the same binary has the same.
func serial(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintln(h, part)
	}
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8: one's own
	s := hex.EncodeToString(b)
	return "urn:uuid:" + s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
