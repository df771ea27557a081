// Package doctor is the command that checks what maintenance needs before it is needed.
package doctor
