// Package doctor is the command that tries what maintenance needs before it is needed.
package doctor
