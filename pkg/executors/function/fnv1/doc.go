// Package fnv1 is Crossplane's FunctionRunnerService v1, as protoc makes it of its description.
package fnv1
