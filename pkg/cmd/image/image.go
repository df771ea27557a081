// Package image says which image an upgrade of the agent takes, and which images may not be of a version.
package image

import (
	"regexp"
	"strings"
)

// Next is the image for a Deployment after an upgrade, and why it is not of the new version,
// if it is not. The registry and the repository are the admin's; the tag follows the version if it
// did before: was is the version of the present manifest.
func Next(live, was, wanted string) (image, why string) {
	repository, tag, digest := splitImage(live)
	_, newTag, _ := splitImage(wanted)
	switch {
	case live == "":
		return wanted, ""
	case digest != "":
		return live, "it is named by its digest"
	case tag == "":
		return live, "it has no tag"
	case tag == newTag:
		return live, ""
	case was != "" && tag != was, was == "" && !versionTag(tag):
		return live, "its tag is not that of a version which install wrote"
	}
	return repository + ":" + newTag, ""
}

// Doubt warns of an image that may not be of this version; empty: no doubt.
func Doubt(image, version string) string {
	_, tag, digest := splitImage(image)
	switch {
	case digest != "":
		return ""
	case tag == "":
		return "has no tag, which means :latest: name the tag of this version, :" + version
	case versionTag(tag) && tag != version:
		return "has another tag than this version (" + version + "): an upgrade needs the image of the new version"
	}
	return ""
}

func versionTag(tag string) bool { return regexp.MustCompile(`^v\d+\.\d+\.\d+`).MatchString(tag) }

// splitImage splits an image's name. A colon before the last slash belongs to a port.
func splitImage(image string) (repository, tag, digest string) {
	repository, digest, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(repository, ":"); at > strings.LastIndex(repository, "/") {
		repository, tag = repository[:at], repository[at+1:]
	}
	return repository, tag, digest
}
